//! What a reader of the run should know before trusting its figures.
//!
//! Owns which doubts are asked for. What makes a doubt is `measure`'s business.

use history::AgentFacts;
use history::BASELINE;
use history::EventKind;
use history::WARM_UP;
use history::{Receipt, Verdict};
use measure::{Doubt, warnings};
use platform::Datacentre;
use results::{LoadResult, ModelledSyncsResult, WarningResult};

use crate::chronicle::Chronicle;
use crate::conductor::Shown;
use crate::prepared::Prepared;

pub(super) fn all_warnings(
    prepared: &Prepared,
    shown: &Shown,
    (loads, agents): (&[LoadResult], &[AgentFacts]),
    modelled: Option<&ModelledSyncsResult>,
    chronicle: &Chronicle,
) -> Vec<WarningResult> {
    let mut found: Vec<WarningResult> = chronicle
        .events()
        .into_iter()
        .filter_map(|event| match event.kind {
            EventKind::Warning { what, remedy } => Some(WarningResult { what, remedy }),
            _ => None,
        })
        .collect();
    let saturated = shown.busy_share.and_then(|busy| warnings::cpu_saturated(busy, shown.own_share));
    let late = modelled.and_then(|syncs| warnings::syncs_late(syncs.late_us_mean, syncs.asked_us));
    let mut doubts: Vec<Doubt> = saturated.into_iter().chain(late).collect();
    let baseline = prepared.facts.phases.iter().find(|phase| phase.name == BASELINE);
    for (load, facts) in loads.iter().zip(&prepared.facts.loads) {
        if let Some(baseline) = baseline {
            let series = shown.recorded.timeline.throughput(&load.name, &facts.transaction);
            let counts: Vec<u64> = series
                .iter()
                .filter(|(second, _)| *second as f64 >= baseline.from_s && (*second as f64) < baseline.to_s)
                .map(|(_, count)| *count)
                .collect();
            doubts.extend(warnings::baseline_doubt(&load.name, &counts));
        }
        if let Some(open_loop) = shown.recorded.open_loops.get(&load.name) {
            let late_us_p99 = open_loop.lateness.value_at_quantile(0.99);
            doubts.extend(warnings::generator_late(&load.name, late_us_p99, load.measured.latency_us.p50));
            let plan = prepared.plans.iter().find(|plan| plan.name == load.name);
            let last = plan.and_then(|plan| plan.step_at(shown.ended_s));
            let rate_per_s = last.and_then(|step| step.rate_per_s).unwrap_or(0.0);
            doubts.extend(warnings::rate_not_kept(&load.name, open_loop.waiting_at_end, rate_per_s));
        }
        for phase in load.phases.iter().filter(|phase| phase.name != WARM_UP) {
            let what = format!("{}, phase {}", load.name, phase.name);
            // p99.9 is not in the report's tables by phase; the doubts worth a reader's time are those about p99.
            doubts.extend(warnings::few_samples(&what, phase.measured.transactions).into_iter().filter(
                |doubt| !matches!(doubt, Doubt::FewSamples { percentile: warnings::Percentile::P99_9, .. }),
            ));
        }
    }
    let told = warnings::folded(&doubts).into_iter();
    found.extend(told.map(|(what, remedy)| WarningResult { what, remedy: remedy.to_owned() }));
    found.extend(super::agents::warnings(agents));
    found.extend(links_in_doubt(prepared.lab.as_ref().and_then(|lab| lab.links.as_ref())));
    found.extend(prepared.lab.as_ref().and_then(|lab| lost_unseen(lost_on_the_way_in(&lab.datacentre))));
    found
}

/// Packets that nodes with power and places of clients have lost before the network of the lab had them.
fn lost_on_the_way_in(datacentre: &Datacentre) -> u64 {
    let of_nodes = datacentre
        .vms
        .iter()
        .filter_map(|vm| lab::interface_losses::lost_on_the_way_in(&vm.namespace()?).ok());
    let places = datacentre.client_places.values();
    let of_clients =
        places.filter_map(|place| lab::interface_losses::lost_on_the_way_in(place.namespace()).ok());
    of_nodes.chain(of_clients).sum()
}

/// No link has lost these, and no figure counts them.
fn lost_unseen(packets: u64) -> Option<WarningResult> {
    (packets > 0).then(|| WarningResult {
        what: format!(
            "{packets} packets were lost between nodes or clients and the simulated network, which took them too slowly; they \
             are in no count of the network"
        ),
        remedy: "repeat the run on a less busy machine, or with fewer nodes or clients".to_owned(),
    })
}

/// A link that does otherwise is a reason of the verdict; one that could not be looked at is no fault of the run, and is to
/// be known all the same.
fn links_in_doubt(links: Option<&Receipt>) -> Option<WarningResult> {
    let in_doubt = links.filter(|links| links.verdict == Verdict::Unknown)?;
    Some(WarningResult {
        what: format!("not every link of the site was shown to behave as configured: {}", in_doubt.evidence.join("; ")),
        remedy: "repeat the run on a less busy machine, or compare the figures with those of a site without these links"
            .to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_that_the_network_never_had_are_warned_of() {
        assert_eq!(lost_unseen(0), None);
        let warning = lost_unseen(12).expect("a warning");
        assert!(
            warning.what.starts_with("12 packets were lost between nodes or clients"),
            "{}",
            warning.what
        );
    }

    #[test]
    fn links_that_were_not_shown_are_warned_of_and_shown_or_refuted_ones_are_not() {
        let told =
            |verdict| links_in_doubt(Some(&Receipt { verdict, evidence: vec!["12 of 20 arrived".into()] }));
        let warning = told(Verdict::Unknown).expect("a warning");
        assert!(warning.what.ends_with("as configured: 12 of 20 arrived"), "{}", warning.what);
        assert_eq!((told(Verdict::Pass), told(Verdict::Fail), links_in_doubt(None)), (None, None, None));
    }
}
