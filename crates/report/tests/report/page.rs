//! The page: what stands on it, that it stands alone, that nothing in a run can break out of its place.

use std::collections::{BTreeMap, BTreeSet};

use history::{EventKind, PlatformAction, Verdict};
use measure::recovery::Incomparable;
use results::{LinkResult, PredictionResult, WarningResult};
use tempfile::TempDir;

use crate::fixture::{self, Fixture};

pub fn page(fixture: &Fixture) -> String {
    let directory = TempDir::new().expect("a temporary directory");
    fixture.write(directory.path()).expect("the fixture is written");
    report::html(&results::read(directory.path()).expect("the fixture is read"))
}

/// The page without tags, white space folded.
fn words(page: &str) -> String {
    let mut text = String::new();
    let mut is_tag = false;
    for character in page.chars() {
        match character {
            '<' => is_tag = true,
            '>' => {
                is_tag = false;
                text.push(' ');
            }
            other if !is_tag => text.push(other),
            _ => {}
        }
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[track_caller]
pub fn check(fixture: &Fixture, expected: &[&str]) {
    let words = words(&page(fixture));
    for expected in expected {
        assert!(words.contains(expected), "not on the page: {expected}");
    }
}

#[test]
fn the_three_numbers_and_the_sentence_stand_on_top() {
    check(
        &fixture::host_failure(),
        &[
            "✓ pass 2 checks passed, 3 expectations passed, 1 fault shown by evidence",
            "Lost writes 0 of 17,310 acknowledged; 2 without a definite answer",
            "Longest interruption 7.3 s no success of ledger after the fault (power-off of host: leader); throughput was below \
             95 % of the baseline for 9 s, 8 s of it below 50 %; recovery was sustained after 10.0 s",
            "Throughput under fault 60 % of the baseline",
            "At 20.0 s the host dc1/a/r1/h1 lost power with the leader n1 on it; n1 booted on dc1/a/r1/h2 after 5.3 s; \
             ledger had no success for 7.3 s from 20.0 s on; throughput was below 95 % of the baseline for 9 s, 8 s of it \
             below 50 %; recovery was sustained after 10.0 s. None of 17,310 acknowledged writes was lost.",
        ],
    );
}

#[test]
fn a_limit_that_an_uneven_baseline_lowers_is_told_with_its_value() {
    let mut fixture = fixture::host_failure();
    let loads = &mut fixture.result.faults[0].loads;
    loads[1].below_95_percent_per_s = Some(176.8);
    (loads[0].below_95_percent_s, loads[1].below_95_percent_s) = (Some(8.0), Some(9.0));
    let told = "throughput was below 52 % of the baseline for 9 s, 8 s of it below 50 %; for how long it was below 95 % cannot be told: the \
                baseline";
    check(&fixture, &[told, "Below 95 % of the baseline 9.0 s (ledger from below 52 % on: uneven baseline)"]);
    let fault = &mut fixture.result.faults[0];
    (fault.below_50_percent_s, fault.below_95_percent_s) = (Some(0.0), Some(0.0));
    let unseen = "throughput of ledger was not below 52 % of the baseline; a smaller loss cannot be told";
    check(&fixture, &[unseen]);
}

#[test]
fn the_load_that_kept_least_under_a_fault_is_named() {
    let mut fixture = fixture::host_failure();
    let fault = &mut fixture.result.faults[0];
    fault.loads[0].throughput_ratio_during = Some(0.11);
    fault.throughput_ratio_during = Some(0.11);
    check(
        &fixture,
        &[
            "Throughput under fault 11 % of the baseline of bank, the load that kept least; mean from the fault",
        ],
    );
}

#[test]
fn the_worst_of_all_faults_stands_on_top() {
    let mut fixture = fixture::host_failure();
    let mut other = fixture.result.faults[0].clone();
    fixture.result.faults[0].gap_s = Some(0.04);
    fixture.result.faults[0].interrupted = Some(false);
    for load in &mut fixture.result.faults[0].loads {
        (load.gap_s, load.interrupted) = (Some(0.04), Some(false));
    }
    other.kind = "partition".to_owned();
    (other.loads[1].gap_s, other.loads[1].gap_is_open) = (Some(21.5), true);
    other.recovery_s.sustained = None;
    fixture.result.faults.push(other);
    check(
        &fixture,
        &[
            "Longest interruption at least 21.5 s no success of ledger after fault 2 of 2 (partition of host: leader); \
             throughput was below 95 % of the baseline for 9 s, 8 s of it below 50 %; sustained recovery took at least 37.0 s: the \
             next fault or the end of the run came before 3 s without a relapse; make the phase longer",
            "no interruption: longest gap 0.04 s",
        ],
    );
    let html = page(&fixture);
    let told = html.split("<ul class=\"lead\">").nth(1).and_then(|rest| rest.split("</ul>").next());
    assert_eq!(
        told.map(|lines| lines.matches("<li>").count()),
        Some(3),
        "a line for each fault and one for the data"
    );
}

#[test]
fn where_nothing_was_interrupted_the_page_says_so_and_where_nothing_is_known_too() {
    let mut fixture = fixture::host_failure();
    let fault = &mut fixture.result.faults[0];
    (fault.gap_s, fault.interrupted) = (Some(0.04), Some(false));
    (fault.below_50_percent_s, fault.below_95_percent_s) = (Some(0.0), Some(0.0));
    fault.recovery_s.sustained = Some(0.0);
    for load in &mut fault.loads {
        (load.gap_s, load.interrupted) = (Some(0.04), Some(false));
    }
    check(&fixture, &["Longest interruption none no interruption: longest gap 0.04 s (ledger, the fault)"]);
    let fault = &mut fixture.result.faults[0];
    (fault.loads, fault.interrupted, fault.gap_s) = (Vec::new(), None, None);
    check(&fixture, &["Longest interruption unknown the times without a success were not recorded"]);
}

#[test]
fn a_run_that_cannot_be_compared_with_its_baseline_says_why_and_what_to_change() {
    let check_why = |why: Incomparable, expected: &str| {
        let mut fixture = fixture::host_failure();
        let fault = &mut fixture.result.faults[0];
        (fault.below_50_percent_s, fault.below_95_percent_s, fault.recovery_s.sustained) = (None, None, None);
        fault.loads[1].incomparable = Some(why);
        check(&fixture, &[&format!("how long throughput was low is unknown: {expected} (ledger)")]);
    };
    check_why(
        Incomparable::ShortBaseline { seconds: 1, needed: 4 },
        "the baseline has 1 whole second, 4 are needed: make it 10 s long",
    );
    check_why(
        Incomparable::UnevenBaseline { slowest: 3, per_s: 80.0 },
        "the baseline is too uneven, 3 successes in its slowest second and 80.0/s on average: make the warm-up and the \
         baseline longer",
    );
    check_why(
        Incomparable::NoWholeSecond,
        "no whole second passed before the next fault or the end of the run: make the phase longer",
    );
    let mut fixture = fixture::host_failure();
    let fault = &mut fixture.result.faults[0];
    (fault.recovery_s.sustained, fault.charged_until_s) = (None, Some(22.0));
    check(
        &fixture,
        &["whether recovery was sustained is unknown: the next fault or the end of the run came within 3 s"],
    );
}

#[test]
fn what_several_faults_cannot_be_compared_for_is_said_once_and_their_figures_carry_the_doubt() {
    let mut fixture = fixture::host_failure();
    let fault = &mut fixture.result.faults[0];
    (fault.below_50_percent_s, fault.below_95_percent_s, fault.recovery_s.sustained) = (None, None, None);
    fault.loads[1].incomparable = Some(Incomparable::UnevenBaseline { slowest: 3, per_s: 80.0 });
    let other = fault.clone();
    fixture.result.faults.push(other);
    let html = page(&fixture);
    let top = html.split("<ul class=\"lead\">").nth(1).and_then(|rest| rest.split("</ul>").next());
    assert_eq!(top.map(|lines| lines.matches("how long throughput was low is unknown").count()), Some(1));
    check(&fixture, &["of the baseline (the baseline is uneven)"]);
}

#[test]
fn lost_writes_are_told_as_lost() {
    let mut fixture = fixture::host_failure();
    fixture.result.verdict = Verdict::Fail;
    fixture.result.checks[0].verdict = Verdict::Fail;
    fixture.result.checks[0].lost = Some(37);
    check(&fixture, &["✕ fail 1 of 2 checks failed", "37 of 17,310 acknowledged writes were lost."]);
}

#[test]
fn lost_writes_of_which_a_check_could_not_tell_all_are_told_as_the_least() {
    let mut fixture = fixture::host_failure();
    let of = |name: &str, lost| results::CheckResult {
        acknowledged: Some(100),
        lost,
        ..results::CheckResult::new(name, Verdict::Fail, "lost")
    };
    fixture.result.checks = vec![of("tpcb-sums", Some(37)), of("last-writes", None)];
    let fault = &mut fixture.result.faults[0];
    (fault.lost_writes, fault.lost_writes_at_least) = (Some(37), true);
    let told = ["At least 37 of 200 acknowledged writes were lost.", "Acknowledged writes lost at least 37"];
    check(&fixture, &told);
}

#[test]
fn a_fault_without_evidence_is_told_as_unproven() {
    let mut fixture = fixture::host_failure();
    fixture.result.verdict = Verdict::Unknown;
    fixture.result.faults[0].took_effect_s = None;
    fixture.result.faults[0].receipt.verdict = Verdict::Unknown;
    check(
        &fixture,
        &[
            "? unknown",
            "At 20.0 s a fault was requested (power-off, host: leader); there is no evidence that it took effect.",
        ],
    );
}

#[test]
fn a_promotion_is_told_and_marked() {
    let mut fixture = fixture::host_failure();
    for event in &mut fixture.events {
        match &mut event.kind {
            EventKind::Leader { node } => *node = "n2".to_owned(),
            EventKind::NodeUp { host, .. } if event.t_s > 0.0 => *host = "dc1/a/r1/h1".to_owned(),
            _ => {}
        }
    }
    check(
        &fixture,
        &[
            "n2 took over as leader after 7.2 s",
            "n2 is the leader now",
            "n2 leader since 27.2 s",
            "n1 first leader",
        ],
    );
}

#[test]
fn statements_stand_in_their_order_with_their_change_against_the_baseline() {
    let words = words(&page(&fixture::host_failure()));
    let places: Vec<usize> =
        ["BEGIN 6,180", "UPDATE accounts 6,180", "SELECT accounts 6,180", "END 6,180", "transaction 6,180"]
            .iter()
            .map(|row| words.find(row).unwrap_or_else(|| panic!("no row {row}")))
            .collect();
    assert!(places.is_sorted(), "{places:?}");
    assert!(
        words.contains("transaction 6,180 10.2 ms 35.2 ms 6,929 11.6 ms 40.2 ms +1.36 ms +13 %"),
        "{words}"
    );
}

#[test]
fn errors_stand_with_the_operations_they_belong_to() {
    let mut fixture = fixture::host_failure();
    let operation = fixture.result.loads[0].measured.operations.get_mut("END").expect("a statement");
    operation.errors = BTreeMap::from([("connection".to_owned(), 4), ("timeout".to_owned(), 3)]);
    operation.errors_indefinite = BTreeMap::from([("connection".to_owned(), 2)]);
    operation.retries = 17;
    operation.count = 12_345;
    check(&fixture, &["END 12,345 7 4 connection 3 timeout 2 connection 17"]);
}

#[test]
fn what_each_check_proves_and_does_not_prove_stands_beside_it() {
    let mut fixture = fixture::host_failure();
    let register = results::CheckResult::new("register", Verdict::Pass, "all in order");
    fixture.result.checks = vec![register];
    check(
        &fixture,
        &[
            "register all in order",
            "What it proves if it passes: Every key was linearizable",
            "What it does not prove: Anything across keys: each is judged by itself.",
        ],
    );
    assert!(!words(&page(&fixture)).contains("these checks look at what is there in the end"));
}

#[test]
fn the_first_error_of_a_class_stands_with_its_code_and_what_to_do() {
    let expected = [
        "other 42P01 40.2 s n1 ERROR: relation &quot;&lt;t&gt;&quot; does not exist",
        "The table does not exist: did you forget --prepare",
    ];
    check(&fixture::host_failure(), &expected);
}

#[test]
fn evidence_and_its_limits_stand_on_the_page() {
    check(
        &fixture::host_failure(),
        &[
            "none of the 11 processes that ran on dc1/a/r1/h1 is left",
            "dc1/a/r1/h1 answers probes from dc1/a/r2/h1 again, after 0.2 s",
            "of 2 inserts without a definite answer 1 happened",
            "a node's volume is a plain directory"
                .replace('\'', "&#39;")
                .as_str()
                .replace("&#39;", "'")
                .as_str(),
            "closed loop (bank with 4 clients and ledger with 2 clients)",
            "holdfast run scenario.yaml --seed 42",
            "the lab&#39;s share while loads ran 24 %",
            "of it syncs and network stacks, used without a lab too 12 %",
            "What to do: use fewer clients or a larger machine",
            "memory 23.5 GiB",
        ],
    );
}

#[test]
fn a_saturated_edge_is_drawn_and_a_site_without_links_has_no_such_section() {
    let mut run = fixture::host_failure();
    assert!(!words(&page(&run)).contains("How busy the links were"));
    run.result.links = vec![
        LinkResult {
            name: "north in".to_owned(),
            rate_bits_per_s: Some(2_000_000),
            packets: 1_200,
            bytes: 1_048_576,
            dropped_packets: 17,
            utilisation: Some(0.5),
            utilisation_max: Some(1.0),
            waiting_bytes_max: 65_536,
        },
        LinkResult { name: "dc1 -> dc2".to_owned(), packets: 5, bytes: 300, ..LinkResult::default() },
    ];
    run.links = "t_s,link,packets,bytes,dropped_packets,utilisation,waiting_bytes\n\
                 0,north in,600,524288,17,1.0,65536\n0,dc1 -> dc2,5,300,0,,0\n\
                 1,north in,600,524288,0,0.25,0\n"
        .to_owned();
    let words = words(&page(&run));
    for wanted in [
        "How busy the links were",
        "Packets dropped by full queues",
        "north in 2 Mbit/s 1.0 MiB 1,200 50 % 100 % 17 packets 64.0 KiB",
        "dc1 -&gt; dc2 no limit 300 B 5 0 packets",
    ] {
        assert!(words.contains(wanted), "{wanted} is not in {words}");
    }
}

#[test]
fn delays_stand_between_regions_and_in_words() {
    let html = page(&fixture::two_regions(20, 45));
    let words = words(&html);
    assert!(words.contains("Links: dc1 → dc2: delay 20 ms; dc2 → dc1: delay 45 ms."), "{words}");
    assert_eq!(
        html.matches("<g class=\"link\">").count(),
        4,
        "one arrow each way, on wide and narrow screens"
    );
    let words = self::words(&page(&fixture::two_regions(20, 20)));
    assert!(words.contains("Links: dc1 ↔ dc2: delay 20 ms each way."), "{words}");
}

#[test]
fn copies_of_a_mirrored_volume_stand_on_their_hosts_with_their_state() {
    let mut run = fixture::host_failure();
    let host = run.result.facts.site.hosts[2].path.clone();
    let copy = serde_json::json!({
        "host": host, "role": "catching up", "replicated_bytes": 0, "copied_bytes": 0, "bytes_left": 4096
    });
    let volume = serde_json::json!({ "node": "n1", "replicas": 2, "resync": [], "components": [copy] });
    run.result.volumes = vec![serde_json::from_value(volume).expect("a volume")];
    let html = page(&run);
    assert_eq!(html.matches("<g class=\"copy behind\">").count(), 2, "wide and narrow");
    assert!(words(&html).contains("volume of n1: catching up"), "{html}");
    assert!(words(&html).contains("copy of a node’s volume"), "the key explains it");
}

#[test]
fn an_outage_is_zero_throughput_and_a_gap_in_latency() {
    let html = page(&fixture::host_failure());
    assert!(html.contains("22 to 23 s\nbank: 0/s"), "a second without success has throughput 0");
    let latency = html
        .split("<strong>Latency of bank")
        .nth(1)
        .and_then(|rest| rest.split("</figure>").next())
        .expect("a figure");
    assert!(
        latency.contains("12 to 13 s") && !latency.contains("22 to 23 s"),
        "a second without success has no latency"
    );
    assert_eq!(
        latency.matches("<path class=\"curve c0\"").count(),
        4,
        "two stretches, on wide and narrow screens"
    );
}

#[test]
fn labels_of_faults_never_cover_each_other() {
    let mut fixture = fixture::host_failure();
    let pattern = fixture.result.faults[0].clone();
    for asked_s in [20.5, 21.0, 22.0, 23.0, 50.0, 55.0, 59.0] {
        let mut fault = pattern.clone();
        (fault.asked_s, fault.took_effect_s, fault.healed_s) = (asked_s, Some(asked_s), None);
        fixture.result.faults.push(fault);
    }
    let html = page(&fixture);
    for svg in html.split("<svg ").skip(1).filter(|svg| svg.contains("fault-label")) {
        let mut lanes: BTreeMap<&str, Vec<(f64, f64)>> = BTreeMap::new();
        for label in svg.split("<text class=\"fault-label\" x=\"").skip(1) {
            let x: f64 = label.split('"').next().and_then(|x| x.parse().ok()).expect("a place");
            let y = label.split(" y=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a lane");
            let shown =
                label.split("</title>").nth(1).and_then(|rest| rest.split('<').next()).expect("a text");
            if !shown.is_empty() {
                lanes.entry(y).or_default().push((x, x + shown.chars().count() as f64 * 7.2));
            }
        }
        assert!(!lanes.is_empty());
        for lane in lanes.values_mut() {
            lane.sort_by(|one, other| one.0.total_cmp(&other.0));
            assert!(lane.windows(2).all(|pair| pair[0].1 < pair[1].0), "{lane:?}");
        }
    }
}

#[test]
fn the_page_stands_alone() {
    let html = page(&fixture::host_failure());
    for outside in
        ["http:", "https:", "//", "src=", "@import", "<script", "javascript:", "<iframe", "<object", "<embed"]
    {
        let found = html.find(outside).map(|at| html[at..].chars().take(80).collect::<String>());
        assert_eq!(found, None, "the page refers outside itself");
    }
    for (at, _) in html.match_indices("href=") {
        let target = html[at..].strip_prefix("href=\"#").and_then(|rest| rest.split('"').next());
        let is_section = target.is_some_and(|target| html.contains(&format!("<section id=\"{target}\">")));
        assert!(is_section || html[at..].starts_with("href=\"data:,\""), "{}", &html[at..at + 40]);
    }
    for (at, _) in html.match_indices("url(") {
        assert!(html[at..].starts_with("url(#"), "{}", &html[at..at + 40]);
    }
}

#[test]
fn every_identifier_is_used_once_and_every_reference_leads_somewhere() {
    let html = page(&fixture::two_regions(20, 20));
    let ids: Vec<&str> = html.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let unique: BTreeSet<&str> = ids.iter().copied().collect();
    assert_eq!(ids.len(), unique.len());
    for reference in html.split("url(#").skip(1).filter_map(|rest| rest.split(')').next()) {
        assert!(unique.contains(reference), "{reference}");
    }
}

#[test]
fn nothing_in_a_run_can_become_markup() {
    const HOSTILE: &str = "<script>alert(1)</script>\"'&\u{0}\u{202e}";
    let mut fixture = fixture::host_failure();
    let text = serde_json::to_string(&(&fixture.result, &fixture.events)).expect("serializes");
    let mut value: serde_json::Value = serde_json::from_str(&text).expect("parses");
    poison(&mut value, HOSTILE);
    let (result, events) = serde_json::from_value(value).expect("verdicts, tags and actions were left alone");
    (fixture.result, fixture.events) = (result, events);
    fixture.result.prediction.push(PredictionResult {
        name: HOSTILE.to_owned(),
        predicted: 1.0,
        measured: None,
        unit: HOSTILE.to_owned(),
        predicted_in_words: Some(HOSTILE.to_owned()),
        measured_in_words: Some(HOSTILE.to_owned()),
        ..PredictionResult::default()
    });
    fixture.result.lab.warnings.push(WarningResult { what: HOSTILE.to_owned(), remedy: HOSTILE.to_owned() });
    let html = page(&fixture);
    assert!(html.contains("&lt;script&gt;alert(1)"));
    assert!(!html.contains("<script") && !html.contains('\u{0}') && !html.contains('\u{202e}'));
}

/// Appends a hostile text to every string that is not a word of the format itself.
fn poison(value: &mut serde_json::Value, hostile: &str) {
    match value {
        serde_json::Value::String(text)
            if !matches!(text.as_str(), "pass" | "fail" | "unknown" | "other")
                && PlatformAction::ALL.iter().all(|action| action.name() != text) =>
        {
            text.push_str(hostile)
        }
        serde_json::Value::Array(values) => values.iter_mut().for_each(|value| poison(value, hostile)),
        serde_json::Value::Object(fields) => {
            fields
                .iter_mut()
                .filter(|(name, _)| *name != "event")
                .for_each(|(_, value)| poison(value, hostile));
        }
        _ => {}
    }
}

#[test]
fn extreme_figures_neither_panic_nor_break_the_drawing() {
    for extreme in [0.0, -1.0, 1e300, f64::MIN_POSITIVE] {
        let mut fixture = fixture::host_failure();
        fixture.result.faults[0].took_effect_s = Some(extreme);
        fixture.result.faults[0].healed_s = Some(extreme);
        fixture.result.faults[0].lost_operations = Some(extreme);
        fixture.result.loads[0].phases[1].to_s = extreme;
        fixture.result.loads[0].phases[1].measured.throughput_per_s = extreme;
        fixture.result.loads[0].phases[2].measured.latency_us.mean = extreme;
        fixture.result.loads[0].measured.transactions = u64::MAX;
        fixture.result.checks[0].acknowledged = Some(u64::MAX);
        fixture.timeline.push_str(
            "61,bank,transaction,18446744073709551615,18446744073709551615,1,2,18446744073709551615,3\n",
        );
        let html = page(&fixture);
        assert!(!html.contains("NaN") && !html.contains("inf"), "{extreme}");
        assert!(!report::text(&fixture.result).contains("NaN"));
    }
}

#[test]
fn a_run_of_a_day_is_thinned_and_says_so() {
    let mut fixture = fixture::host_failure();
    let rows: String = (60..86_400)
        .map(|second| format!("{second},bank,transaction,{},0,900,1200,1900,2500\n", 400 + second % 7))
        .collect();
    fixture.timeline.push_str(&rows);
    let html = page(&fixture);
    assert!(html.contains("Each point stands for 72 seconds"));
    assert!(html.len() < 3_000_000, "{}", html.len());
}

#[test]
fn a_site_of_ten_thousand_hosts_is_drawn_with_what_matters() {
    let mut fixture = fixture::host_failure();
    let pattern = fixture.result.facts.site.hosts[0].clone();
    for index in 0..10_000 {
        let mut host = pattern.clone();
        host.rack = Some(format!("x{}", index / 40));
        host.name = format!("h{index}");
        host.path = format!("dc1/a/x{}/h{index}", index / 40);
        fixture.result.facts.site.hosts.push(host);
    }
    let html = page(&fixture);
    assert!(html.contains("+ 246 more racks") && html.contains("+ 36 more hosts"));
    assert!(words(&html).contains("n1 leader since 25.3 s"));
}

#[test]
fn the_report_replaces_an_older_one_and_leaves_nothing_else() {
    let directory = TempDir::new().expect("a temporary directory");
    fixture::host_failure().write(directory.path()).expect("written");
    std::fs::write(directory.path().join("report.html"), "old").expect("written");
    let path = report::write(directory.path()).expect("the report is written");
    assert_eq!(path, directory.path().join("report.html"));
    let mut names: Vec<String> = std::fs::read_dir(directory.path())
        .expect("listed")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    assert_eq!(names, ["events.jsonl", "report.html", "result.json", "scenario.yaml", "timeline.csv"]);
    assert!(std::fs::read_to_string(path).expect("read").starts_with("<!DOCTYPE html>"));
}

#[test]
fn a_prediction_that_the_run_contradicts_stands_at_the_top_of_the_page_and_of_the_terminal() {
    let mut fixture = fixture::host_failure();
    fixture.result.prediction.push(PredictionResult {
        name: "writes served".to_owned(),
        predicted: 1.0,
        measured: Some(0.0),
        agrees: Some(false),
        ..PredictionResult::default()
    });
    let told = "Prediction missed: writes served: predicted 1, measured 0";
    let html = page(&fixture);
    let (top, _) = html.split_once("<div class=\"numbers\">").expect("the figures follow the verdict");
    assert!(top.contains(&format!("<li class=\"contradicted\">{told}</li>")), "{top}");
    let text = report::text(&fixture.result);
    let (top, _) = text.split_once("Expectations").expect("the expectations follow");
    assert!(top.contains(told), "{top}");
}

#[test]
fn a_workloads_figures_are_a_table_and_an_efficiency_above_the_limit_is_explained() {
    let mut fixture = fixture::host_failure();
    let figures = &mut fixture.result.loads[0].measured.figures;
    figures.insert("efficiency_percent".to_owned(), 120.0);
    figures.insert("sequential_write_mb_per_s".to_owned(), 80.25);
    let html = page(&fixture);
    assert!(html.contains("<th scope=\"row\">efficiency<td class=\"n\">120.0 %"), "the efficiency");
    assert!(html.contains("<th scope=\"row\">sequential write<td class=\"n\">80.2 MB/s"), "the pass");
    assert!(html.contains("An efficiency above 100 % is possible"), "the reason");
    fixture.result.loads[0].measured.figures.insert("efficiency_percent".to_owned(), 98.0);
    assert!(!page(&fixture).contains("An efficiency above 100 %"));
}
