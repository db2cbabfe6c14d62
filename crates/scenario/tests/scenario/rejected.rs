//! `scenarios/rejected/`: each file is refused, with exactly the message beside it. `UPDATE_SNAPSHOTS=1` rewrites the
//! messages.

use std::path::Path;

use miette::{GraphicalReportHandler, GraphicalTheme};
use scenario::{Rejection, Source, parse};

fn rendered(rejection: &Rejection) -> String {
    let mut text = String::new();
    GraphicalReportHandler::new_themed(GraphicalTheme::unicode_nocolor())
        .with_width(100)
        .without_syntax_highlighting()
        .render_report(&mut text, rejection)
        .unwrap();
    // The drawing pads some lines; what is kept in a repository should not end in blanks.
    text.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

#[test]
fn every_rejected_scenario_gives_the_message_beside_it() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/rejected");
    let update = std::env::var_os("UPDATE_SNAPSHOTS").is_some();
    let mut names: Vec<String> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .filter_map(|path| path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned))
        .collect();
    names.sort();
    assert!(names.len() >= 200, "only {} rejected scenarios", names.len());
    let mut wrong = Vec::new();
    for name in names {
        let text = std::fs::read_to_string(folder.join(format!("{name}.yaml"))).unwrap();
        let source = Source { name: format!("scenarios/rejected/{name}.yaml"), text };
        let Err(rejection) = parse(&source, &[]) else { panic!("{name} is accepted") };
        let message = rendered(&rejection);
        let beside = folder.join(format!("{name}.txt"));
        if update {
            std::fs::write(&beside, &message).unwrap();
        } else if std::fs::read_to_string(&beside).unwrap_or_default() != message {
            wrong.push(format!("{name} now gives\n{message}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
