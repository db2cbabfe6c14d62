//! A prediction at scale, as text.

use model::scale::blast::Blast;
use model::scale::rebuild::Rebuild;
use model::scale::{Domain, Placement};
use paper::at_scale::{Durability, Prediction};
use report::with_thousands;
use scenario::units::approximate_size;

use super::beside;

/// Everything, line by line.
pub fn prediction(name: &str, found: &Prediction) -> Vec<String> {
    let count = |level: Domain| plural(found.cluster.count(level) as u64, level.name());
    let mut lines = vec![
        format!(
            "{name} with {} in {}, {} and {}, {} of {}",
            count(Domain::Host),
            count(Domain::Rack),
            count(Domain::Zone),
            count(Domain::Region),
            plural(found.ranges as u64, "range"),
            plural(found.each as u64, "replica"),
        ),
        format!(
            "  placed {}; a host shares ranges with {:.0} others on average; seed {}",
            placed(found.placement),
            found.scatter_width,
            found.seed
        ),
        String::new(),
        "Every single and every double failure; a range stops without a majority of its replicas (Raft)"
            .to_owned(),
        format!(
            "  {:16}{:>14}{:>22}{:>22}{:>14}{:>14}",
            "", "failures", "stop some range", "leave no replica", "worst stops", "mean stops"
        ),
    ];
    lines.extend(found.singles.iter().chain(&found.doubles).filter(|blast| blast.failures > 0).map(blast));
    lines.push(String::new());
    lines.push("Loss of data".to_owned());
    for durability in &found.durability {
        lines.extend(loss(durability));
    }
    lines.push(String::new());
    lines.push("Time without a majority, by replicas, hosts failing independently".to_owned());
    let shares =
        found.without_majority.iter().map(|(replicas, share)| format!("{replicas}: {}", small(*share)));
    lines.push(format!("  {}", shares.collect::<Vec<_>>().join("   ")));
    if !found.rebuilds.is_empty() {
        lines.push(String::new());
        lines.push(
            "Rebuild after the permanent loss of the fullest of these, with the full bandwidth of hosts and edges"
                .to_owned(),
        );
    }
    for (level, place, moved) in &found.rebuilds {
        let head = format!("  {} {}", level.name(), place + 1);
        lines.extend(beside(&head, 18, &rebuild(moved)));
    }
    lines
}

fn placed(placement: Placement) -> String {
    match placement {
        Placement::Random => "at random".to_owned(),
        Placement::Copysets { scatter_width } => format!("in copysets of scatter width {scatter_width}"),
    }
}

fn blast(blast: &Blast) -> String {
    let names: Vec<&str> = blast.domains.iter().map(|level| level.name()).collect();
    let share =
        |count: u64| format!("{} ({})", with_thousands(count), small(count as f64 / blast.failures as f64));
    format!(
        "  {:16}{:>14}{:>22}{:>22}{:>14}{:>14.2}",
        names.join(" + "),
        with_thousands(blast.failures),
        share(blast.stopping),
        share(blast.losing),
        with_thousands(blast.ranges_stopped_max),
        blast.ranges_stopped_mean
    )
}

fn loss(durability: &Durability) -> Vec<String> {
    let simulated = durability.simulated.map_or_else(String::new, |estimate| {
        format!(
            " (simulated: {}, {} to {} with 95 % confidence)",
            small(estimate.share),
            small(estimate.low),
            small(estimate.high)
        )
    });
    // The share of hosts that do not return may be less than one host.
    let outage = (durability.failed > 0).then(|| {
        format!(
            "an outage after which {} do not return loses some with {}{simulated}; ",
            plural(durability.failed as u64, "host"),
            small(durability.after_outage),
        )
    });
    let text = format!(
        "{} hold data; {}a year of independent failures and repairs loses some with {}",
        sets(durability.sets),
        outage.unwrap_or_default(),
        small(durability.within_a_year)
    );
    let head = match durability.placement {
        Placement::Random => "  at random".to_owned(),
        Placement::Copysets { scatter_width } => format!("  copysets, {scatter_width}"),
    };
    beside(&head, 18, &text)
}

fn rebuild(moved: &Rebuild) -> String {
    let mut text = format!(
        "{} copied, {} in all, {} between zones, {} through the busiest edge: {}, limited by {}",
        plural(moved.replicas, "replica"),
        approximate_size(moved.bytes),
        approximate_size(moved.bytes_between_zones),
        approximate_size(moved.edge_bytes_max),
        time(moved.time_s),
        if moved.edge_is_narrowest { "that edge" } else { "a host" }
    );
    if moved.ranges_lost > 0 {
        text.push_str(&format!("; {} had no other replica", plural(moved.ranges_lost, "range")));
    }
    if moved.without_target > 0 {
        text.push_str(&format!("; for {} no host is left", plural(moved.without_target, "replica")));
    }
    text
}

/// How many sets of hosts, with the digits that matter.
fn sets(count: f64) -> String {
    match count {
        _ if count < 1e6 => {
            let count = count.round() as u64;
            format!("{} of hosts", report::counted(count, "set", "sets"))
        }
        _ if count < 1e9 => format!("{:.1} million sets of hosts", count / 1e6),
        _ if count < 1e12 => format!("{:.1} billion sets of hosts", count / 1e9),
        _ => format!("{count:.1e} sets of hosts"),
    }
}

/// A probability or a share with the digits that matter.
fn small(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        _ if percent == 0.0 || percent == 100.0 => format!("{percent:.0} %"),
        _ if percent >= 99.995 => "over 99.99 %".to_owned(),
        _ if percent >= 0.01 => format!("{percent:.2} %"),
        _ => format!("{percent:.1e} %"),
    }
}

fn plural(count: u64, noun: &str) -> String {
    report::counted(count, noun, &format!("{noun}s"))
}

fn time(seconds: f64) -> String {
    match seconds {
        _ if seconds < 120.0 => format!("{seconds:.1} s"),
        _ if seconds < 7_200.0 => format!("{:.1} min", seconds / 60.0),
        _ if seconds < 172_800.0 => format!("{:.1} h", seconds / 3_600.0),
        _ => format!("{:.1} days", seconds / 86_400.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_read_as_people_write_them() {
        assert_eq!(
            (small(0.0), small(0.5), small(0.999_999_9)),
            ("0 %".into(), "50.00 %".into(), "over 99.99 %".into())
        );
        assert_eq!(small(2.5e-9), "2.5e-7 %");
        assert_eq!(time(7_200.0), "2.0 h");
        assert_eq!(
            [1.0, 999.6, 2.5e7, 3e9, 3e15].map(sets),
            [
                "1 set of hosts",
                "1,000 sets of hosts",
                "25.0 million sets of hosts",
                "3.0 billion sets of hosts",
                "3.0e15 sets of hosts"
            ]
        );
    }
}
