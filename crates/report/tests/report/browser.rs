//! The page in a real browser: it renders, is not blank, and the browser finds nothing to complain about.

use std::ffi::OsString;
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use report::overview::{self, Filter, Row};
use results::folder::Found;
use tempfile::TempDir;

use crate::fixture;

/// A browser that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(60);

/// The browser to use: as told, or the first of the usual names on the path.
fn browser() -> Option<PathBuf> {
    if let Some(told) = std::env::var_os("HOLDFAST_CHROMIUM") {
        return Some(told.into());
    }
    let folders: Vec<PathBuf> = std::env::split_paths(&std::env::var_os("PATH")?).collect();
    let names = ["chromium", "chromium-browser", "google-chrome"];
    names
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)))
        .find(|path| path.is_file())
}

/// A browser with its own process group, ended as a whole when the test is done with it, however that comes about.
struct Browser(Child);

impl Drop for Browser {
    fn drop(&mut self) {
        let group = format!("-{}", self.0.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status();
        let _ = self.0.wait();
    }
}

/// Runs the browser on a page; returns what it printed and what it complained about.
fn run(browser: &Path, page: &Path, arguments: &[OsString]) -> (String, String) {
    use std::os::unix::process::CommandExt;
    let profile = TempDir::new().expect("a temporary profile");
    let mut printed = tempfile::tempfile().expect("a temporary file");
    let mut complained = tempfile::tempfile().expect("a temporary file");
    let mut command = Command::new(browser);
    command
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--hide-scrollbars",
        ])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .args(["--disable-dev-shm-usage", "--enable-logging=stderr", "--window-size=1200,4000"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .args(arguments)
        .arg(format!("file://{}", page.display()))
        .env("HOME", profile.path())
        .stdin(Stdio::null())
        .stdout(printed.try_clone().expect("a second handle"))
        .stderr(complained.try_clone().expect("a second handle"))
        .process_group(0);
    let mut browser = Browser(command.spawn().expect("the browser starts"));
    let deadline = Instant::now() + LIMIT;
    let status = loop {
        match browser.0.try_wait().expect("the browser can be waited for") {
            Some(status) => break status,
            None if Instant::now() > deadline => panic!("the browser did not end within {LIMIT:?}"),
            None => std::thread::sleep(Duration::from_millis(50)),
        }
    };
    drop(browser);
    let mut texts = [String::new(), String::new()];
    for (file, text) in [&mut printed, &mut complained].into_iter().zip(&mut texts) {
        file.rewind().expect("rewound");
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).expect("read");
        *text = String::from_utf8_lossy(&bytes).into_owned();
    }
    let [printed, complained] = texts;
    assert!(status.success(), "{status}: {complained}");
    (printed, complained)
}

#[test]
fn report_renders_in_chromium() {
    let Some(browser) = browser() else {
        eprintln!("skipped: report_renders_in_chromium: no chromium found; install the package chromium");
        return;
    };
    let directory = TempDir::new().expect("a temporary directory");
    fixture::two_regions(20, 45).write(directory.path()).expect("written");
    let page = report::write(directory.path()).expect("the report is written");

    let (document, complaints) = run(&browser, &page, &["--dump-dom".into()]);
    assert!(document.contains("2 checks passed") && document.contains("</footer>"), "{document}");
    assert_eq!(console(&complaints), Vec::<&str>::new());

    let picture = directory.path().join("page.png");
    let mut screenshot = OsString::from("--screenshot=");
    screenshot.push(&picture);
    let (_, complaints) = run(&browser, &page, &[screenshot]);
    assert_eq!(console(&complaints), Vec::<&str>::new());
    let picture = std::fs::read(picture).expect("a picture was made");
    assert!(picture.starts_with(b"\x89PNG\r\n\x1a\n"));

    // A blank page of this size is a few kilobytes when compressed; one with text and curves is not.
    let blank = directory.path().join("blank.html");
    std::fs::write(&blank, "<!DOCTYPE html><title>blank</title>").expect("written");
    let blank_picture = directory.path().join("blank.png");
    let mut screenshot = OsString::from("--screenshot=");
    screenshot.push(&blank_picture);
    run(&browser, &blank, &[screenshot]);
    let blank_picture = std::fs::read(blank_picture).expect("a picture was made");
    assert!(picture.len() > 5 * blank_picture.len(), "{} against {}", picture.len(), blank_picture.len());
}

#[test]
fn the_page_of_all_runs_renders_in_chromium_with_a_line_for_each() {
    let Some(browser) = browser() else {
        eprintln!(
            "skipped: the_page_of_all_runs_renders_in_chromium: no chromium found; install the package chromium"
        );
        return;
    };
    let folder = TempDir::new().expect("a temporary directory");
    let directory = folder.path().join("runs/two-regions/first");
    std::fs::create_dir_all(&directory).expect("made");
    fixture::two_regions(20, 45).write(&directory).expect("written");
    let listed = results::folder::find(folder.path()).directories;
    let now = std::time::SystemTime::now();
    let found: Vec<Found> = listed.iter().map(|(name, path)| Found::read(name, path, now)).collect();
    let rows: Vec<Row<'_>> =
        found.iter().map(|found| Row { found, link: format!("/run?dir={}", found.name) }).collect();
    let page = folder.path().join("runs.html");
    std::fs::write(&page, overview::html("runs", &rows, (1, false), &Filter::default())).expect("written");
    let (document, complaints) = run(&browser, &page, &["--dump-dom".into()]);
    assert!(
        document.contains("/run?dir=runs/two-regions/first") && document.contains("1 of 1 run"),
        "{document}"
    );
    assert_eq!(console(&complaints), Vec::<&str>::new());
}

#[test]
fn the_browser_test_would_see_an_error_in_a_page() {
    let Some(browser) = browser() else {
        eprintln!(
            "skipped: the_browser_test_would_see_an_error_in_a_page: no chromium found; install the package chromium"
        );
        return;
    };
    let directory = TempDir::new().expect("a temporary directory");
    let page = directory.path().join("bad.html");
    std::fs::write(&page, "<!DOCTYPE html><script>console.error('broken')</script>").expect("written");
    let (_, complaints) = run(&browser, &page, &["--dump-dom".into()]);
    assert_eq!(console(&complaints).len(), 1, "{complaints}");
}

/// The lines in which the browser reports something a page did.
fn console(complaints: &str) -> Vec<&str> {
    complaints.lines().filter(|line| line.contains("CONSOLE")).collect()
}
