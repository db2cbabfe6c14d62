//! A thread that adds rows to a file of the run directory once in each second.
//!
//! Owns the file and the thread's end. What a row says is for who watches.

use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::time::Instant;

use crate::each_second::{EachSecond, Seconds};

/// What can go wrong in watching links or hosts.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    #[error("{path}: {source}")]
    File {
        path: PathBuf,
        /// What the operating system answered.
        source: io::Error,
    },
    /// What is watched is gone, or the thread.
    #[error("{0}")]
    Gone(String),
}

/// A file to which rows are added.
pub(crate) struct Rows {
    file: BufWriter<File>,
    path: PathBuf,
}

impl Rows {
    fn create(path: PathBuf, header: &str) -> Result<Rows, WatchError> {
        match File::create(&path) {
            Ok(file) => {
                let mut rows = Rows { file: BufWriter::new(file), path };
                rows.add(format_args!("{header}"))?;
                Ok(rows)
            }
            Err(source) => Err(WatchError::File { path, source }),
        }
    }

    /// Adds one. It is in the file with the next [`Rows::flush`].
    pub(crate) fn add(&mut self, row: fmt::Arguments<'_>) -> Result<(), WatchError> {
        let written = writeln!(self.file, "{row}");
        written.map_err(|source| WatchError::File { path: self.path.clone(), source })
    }

    /// Writes what was added.
    pub(crate) fn flush(&mut self) -> Result<(), WatchError> {
        let flushed = self.file.flush();
        flushed.map_err(|source| WatchError::File { path: self.path.clone(), source })
    }
}

/// The running watch. Dropping it ends it.
pub(crate) struct FileWatch<T> {
    what: &'static str,
    job: EachSecond<Result<T, WatchError>>,
}

impl<T: Send + 'static> FileWatch<T> {
    /// Makes the file and starts the job, whose first second begins at `zero`. `what` names the thread, and what is watched.
    ///
    /// # Errors
    /// When the file or the thread cannot be made.
    pub(crate) fn start(
        what: &'static str,
        (path, header): (PathBuf, &str),
        zero: Instant,
        job: impl FnOnce(Rows, Seconds) -> Result<T, WatchError> + Send + 'static,
    ) -> Result<FileWatch<T>, WatchError> {
        let rows = Rows::create(path, header)?;
        match EachSecond::start(what, zero, move |seconds| job(rows, seconds)) {
            Ok(job) => Ok(FileWatch { what, job }),
            Err(error) => Err(WatchError::Gone(format!("{what}: start their thread: {error}"))),
        }
    }

    /// Ends it after a last look, and says what it found.
    ///
    /// # Errors
    /// When something could not be written or looked at: the file is not complete then.
    pub(crate) fn finish(self) -> Result<T, WatchError> {
        let FileWatch { what, job } = self;
        job.finish().unwrap_or_else(|| Err(WatchError::Gone(format!("{what}: their thread panicked"))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stand_below_the_header_and_a_file_that_cannot_be_made_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("links.csv");
        let job = |mut rows: Rows, seconds: Seconds| {
            for (second, _) in seconds.take(1) {
                rows.add(format_args!("{second},edge"))?;
            }
            rows.flush()
        };
        let watch =
            FileWatch::start("links", (path.clone(), "t_s,link"), Instant::now(), job).expect("started");
        watch.finish().expect("written");
        assert_eq!(std::fs::read_to_string(&path).expect("read"), "t_s,link\n0,edge\n");
        let missing = folder.path().join("none/links.csv");
        let failed =
            FileWatch::start("links", (missing, "t_s"), Instant::now(), job).err().expect("no folder");
        assert!(failed.to_string().contains("none/links.csv"), "{failed}");
    }

    #[test]
    fn a_thread_that_panicked_is_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let job = |_: Rows, _: Seconds| -> Result<(), WatchError> { panic!("planted") };
        let path = folder.path().join("hosts.csv");
        let watch = FileWatch::start("hosts", (path, "t_s"), Instant::now(), job).expect("started");
        assert_eq!(watch.finish().expect_err("gone").to_string(), "hosts: their thread panicked");
    }
}
