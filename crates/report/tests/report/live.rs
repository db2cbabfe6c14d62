//! The page of a run under way: it asks for itself again as long as something is to come, and tells what is known.

use tempfile::TempDir;

use crate::fixture;

const AGAIN: &str = "http-equiv=\"refresh\"";

#[test]
fn a_run_under_way_is_told_as_far_as_it_is_and_asks_again() {
    let folder = TempDir::new().expect("a temporary folder");
    assert!(report::live::html(folder.path(), false).contains("The lab is being built."));
    fixture::host_failure().cut_at(33.4).write_killed(folder.path()).expect("written");
    let page = report::live::html(folder.path(), false);
    for wanted in [AGAIN, "of 60.0", "phase fault", "fault 1 took effect", "Over time", "Events"] {
        assert!(page.contains(wanted), "{wanted}");
    }
    assert!(!page.contains("<script") && !page.contains("fault 1 healed"));
}

#[test]
fn with_its_result_the_page_is_the_report_and_asks_again_only_before_another_run() {
    let folder = TempDir::new().expect("a temporary folder");
    fixture::host_failure().write(folder.path()).expect("written");
    let page = report::live::html(folder.path(), false);
    assert_eq!(page, report::html(&results::read(folder.path()).expect("a run")));
    assert!(!page.contains(AGAIN) && report::live::html(folder.path(), true).contains(AGAIN));
}
