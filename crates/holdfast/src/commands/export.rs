//! `holdfast export`: a run in a form that other programs read, from its directory alone.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use report::export::{ExportError, Format, Rows};

use crate::arguments::{ExportOptions, FormatWord, RowsWord};
use crate::exit::Exit;

/// Writes it to standard output or a file; ends with 0 whatever the run's verdict.
pub fn export(options: &ExportOptions) -> Result<Exit, Exit> {
    let rows = match options.rows {
        RowsWord::Timeline => Rows::Timeline,
        RowsWord::Operations => Rows::Operations,
        RowsWord::Figures => Rows::Figures,
    };
    let format = match options.format {
        FormatWord::Jepsen => Format::Jepsen,
        FormatWord::Csv => Format::Csv(rows),
        FormatWord::Junit => Format::Junit,
        FormatWord::Openmetrics => Format::OpenMetrics,
    };
    if options.rows != RowsWord::Timeline && options.format != FormatWord::Csv {
        return Err(Exit::wrong(anyhow::anyhow!("`--rows` is for `--format csv`; leave it out")));
    }
    let exported = match &options.out {
        Some(path) => to_file(options, format, path),
        None => to_stdout(options, format),
    };
    match exported {
        Ok(()) => Ok(Exit::Done),
        // A reader that has gone away (`| head`) has all it wants.
        Err(ExportError::Io(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Exit::Done),
        Err(ExportError::Io(error)) => Err(Exit::failed(error)),
        Err(error) => Err(Exit::wrong(error)),
    }
}

fn to_stdout(options: &ExportOptions, format: Format) -> Result<(), ExportError> {
    let mut sink = BufWriter::new(io::stdout().lock());
    report::export::export(&options.run_directory, format, options.load.as_deref(), &mut sink)
}

/// Nothing is left under the name given unless all of it could be written.
fn to_file(options: &ExportOptions, format: Format, path: &Path) -> Result<(), ExportError> {
    let mut text = Vec::new();
    report::export::export(&options.run_directory, format, options.load.as_deref(), &mut text)?;
    let at = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    let mut file = File::create(path).map_err(at)?;
    Ok(file.write_all(&text).map_err(at)?)
}
