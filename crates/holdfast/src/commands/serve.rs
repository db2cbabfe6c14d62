//! `holdfast serve`: the page of all runs in a folder, live and past, until it is interrupted.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use history::Verdict;
use report::compare::Given;
use report::overview::{self, Filter, Row};
use results::folder::{self, Found, State};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::exit::Exit;
use crate::printed;
use crate::web::{Answer, Server, Site};

/// Serves until SIGINT or SIGTERM; the address stands in the first line.
pub fn serve(folder: &Path, address: SocketAddr) -> Result<Exit, Exit> {
    if !folder.is_dir() {
        let what =
            anyhow::anyhow!("{}: not a folder; name one with run directories, as `runs`", folder.display());
        return Err(Exit::wrong(what));
    }
    let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(Exit::failed)?;
    let runs = Runs { folder: folder.to_owned(), ended: Mutex::default() };
    let server = Server::start("--at", address, Arc::new(runs))?;
    printed!("{}", server.url());
    // Whichever it is, it is the end.
    let _ = signals.forever().next();
    Ok(Exit::Done)
}

/// The runs of a folder.
struct Runs {
    folder: PathBuf,
    /// Those that have ended, as they were when they were read, by name. Their files may still be written anew.
    ended: Mutex<BTreeMap<String, (Option<SystemTime>, Found)>>,
}

impl Site for Runs {
    fn page(&self, path: &str, query: &str) -> Option<Answer> {
        let asked: Vec<(String, String)> = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        match path {
            "/" => Some(Answer::html(self.overview(&asked))),
            "/run" => {
                let (name, directory) = self.named(&asked).pop()?;
                Some(Answer::html(match self.found(&name, &directory).state {
                    State::UnderWay => report::live::html(&directory, false),
                    State::Ended | State::Abandoned => report::html(&results::read(&directory).ok()?),
                }))
            }
            "/compare" => Some(self.comparison(&asked)),
            _ => None,
        }
    }
}

impl Runs {
    fn overview(&self, asked: &[(String, String)]) -> String {
        let listed = folder::find(&self.folder);
        let mut runs: Vec<Found> =
            listed.directories.iter().map(|(name, directory)| self.found(name, directory)).collect();
        runs.sort_by(|one, other| began(other).cmp(began(one)).then_with(|| other.name.cmp(&one.name)));
        let filter = filter(asked);
        let rows = runs.iter().filter(|found| filter.takes(found)).map(|found| Row {
            found,
            link: format!(
                "/run?{}",
                form_urlencoded::Serializer::new(String::new()).append_pair("dir", &found.name).finish()
            ),
        });
        let rows: Vec<Row<'_>> = rows.collect();
        overview::html(&self.folder.display().to_string(), &rows, (runs.len(), listed.is_cut), &filter)
    }

    /// A run, read again only when it was written to since.
    fn found(&self, name: &str, directory: &Path) -> Found {
        let written = folder::last_written(directory);
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, found)) = ended.get(name)
            && *at == written
        {
            return found.clone();
        }
        let found = Found::read(name, directory, SystemTime::now());
        if found.state == State::Ended {
            ended.insert(name.to_owned(), (written, found.clone()));
        }
        found
    }

    /// The run directories that are asked for. A name that is none of the folder's leads nowhere: no path is made of it.
    fn named(&self, asked: &[(String, String)]) -> Vec<(String, PathBuf)> {
        let listed: BTreeMap<String, PathBuf> = folder::find(&self.folder).directories.into_iter().collect();
        let names = asked.iter().filter(|(key, _)| key == "dir").map(|(_, name)| name.clone());
        names.filter_map(|name| listed.get(&name).cloned().map(|directory| (name, directory))).collect()
    }

    fn comparison(&self, asked: &[(String, String)]) -> Answer {
        let chosen = self.named(asked);
        if chosen.len() < 2 {
            return Answer::line("400 Bad Request", "choose two runs or more to compare");
        }
        let given: Vec<Given> = chosen.into_iter().map(|(_, directory)| Given::at(directory, None)).collect();
        match report::compare::compare(&given, None) {
            Ok(comparison) => Answer::html(report::compare::html(&comparison)),
            Err(error) => Answer::line("400 Bad Request", &error.to_string()),
        }
    }
}

fn began(found: &Found) -> &str {
    found.result.as_ref().map_or("", |result| result.started_at.as_str())
}

fn filter(asked: &[(String, String)]) -> Filter {
    let value =
        |name: &str| asked.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value.as_str());
    let verdicts = [Verdict::Pass, Verdict::Fail, Verdict::Unknown];
    let verdict = verdicts.into_iter().find(|verdict| verdict.to_string() == value("verdict"));
    Filter { text: value("text").to_owned(), verdict }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs() -> (tempfile::TempDir, Runs) {
        let folder = tempfile::tempdir().expect("a folder");
        let outside = folder.path().join("outside");
        let inside = folder.path().join("runs/redis/one");
        for directory in [&outside, &inside] {
            std::fs::create_dir_all(directory).expect("made");
            std::fs::write(directory.join("events.jsonl"), "").expect("written");
        }
        let runs = Runs { folder: folder.path().join("runs"), ended: Mutex::default() };
        (folder, runs)
    }

    #[test]
    fn only_run_directories_of_the_folder_have_pages() {
        let (_folder, runs) = runs();
        let status = |path: &str, query: &str| runs.page(path, query).map(|answer| answer.status);
        assert_eq!(status("/", ""), Some("200 OK"));
        assert!(runs.page("/", "").expect("a page").text.contains("/run?dir=redis%2Fone"));
        assert_eq!(status("/run", "dir=redis%2Fone"), Some("200 OK"));
        for elsewhere in ["dir=..%2Foutside", "dir=redis", "dir=%2Fetc", "dir=", ""] {
            assert_eq!(status("/run", elsewhere), None, "{elsewhere}");
        }
        assert_eq!(status("/result.json", ""), None);
        assert_eq!(status("/compare", "dir=redis%2Fone"), Some("400 Bad Request"));
    }

    #[test]
    fn the_filter_is_what_the_form_sends() {
        let (_folder, runs) = runs();
        let shows = |query: &str| runs.page("/", query).expect("a page").text.contains("/run?dir=");
        assert!(shows("text=RED&verdict="));
        assert!(!shows("text=etcd"));
        // It has just been written to, and has no verdict yet.
        assert!(!shows("text=&verdict=pass"));
        assert!(shows("verdict=nonsense"));
    }
}
