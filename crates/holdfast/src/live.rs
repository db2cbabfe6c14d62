//! `--live`: the page of the run under way, from its directory's files.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::exit::Exit;
use crate::web::{Answer, Server, Site};

/// What is shown: a run, and whether another comes after it.
#[derive(Debug, Clone, Default)]
struct Shown {
    run_directory: Option<PathBuf>,
    more: bool,
}

#[derive(Default)]
struct OnePage(Mutex<Shown>);

impl OnePage {
    fn change(&self, change: impl FnOnce(&mut Shown)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Site for OnePage {
    fn page(&self, path: &str, _: &str) -> Option<Answer> {
        if path != "/" {
            return None;
        }
        // The run does not wait for a page to be made.
        let shown = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Some(Answer::html(match &shown.run_directory {
            Some(run_directory) => report::live::html(run_directory, shown.more),
            None => report::live::notice("The run has not begun."),
        }))
    }
}

/// The page, served until it is dropped.
pub struct Live {
    server: Server,
    page: Arc<OnePage>,
}

impl Live {
    /// Begins to serve.
    pub fn start(address: SocketAddr) -> Result<Live, Exit> {
        let page: Arc<OnePage> = Arc::default();
        Ok(Live { server: Server::start("--live", address, page.clone())?, page })
    }

    /// Where it is served.
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// Shows this run from now on.
    pub fn show(&self, run_directory: &Path) {
        self.page.change(|shown| shown.run_directory = Some(run_directory.to_owned()));
    }

    /// Another run comes after the one shown: the page goes on asking for itself.
    pub fn expect_more(&self) {
        self.page.change(|shown| shown.more = true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_page_and_it_follows_the_run() {
        let page = OnePage::default();
        let text = || page.page("/", "").expect("a page").text;
        assert!(text().contains("The run has not begun."));
        assert_eq!(page.page("/result.json", ""), None);
        let folder = tempfile::tempdir().expect("a temporary folder");
        page.change(|shown| shown.run_directory = Some(folder.path().to_owned()));
        assert!(text().contains("The lab is being built."));
    }
}
