//! A small part of the campaign: runs drawn by chance, most of them disturbed, always the same ones.

/// Few, because each takes some ten seconds; `cargo xtask campaign` makes hundreds.
const SEEDS: std::ops::Range<u64> = 1..5;

#[test]
fn runs_drawn_by_chance_and_disturbed_leave_nothing_behind_and_say_no_more_than_was_seen() {
    // Built together with the tests of the workspace: cargo would build one for this test alone from other features.
    let holdfast = xtask::target_directory().join("debug/holdfast");
    if !holdfast.is_file() {
        eprintln!("skipped: runs_drawn_by_chance: {} was not built", holdfast.display());
        return;
    }
    let complaints = xtask::campaign::complaints(&holdfast, SEEDS, 2).expect("the campaign's own part");
    assert!(complaints.is_empty(), "{complaints:#?}");
}
