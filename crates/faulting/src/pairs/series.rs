//! Rates and queues on ways with several limiting links, and on links that others fill, in the world of `pairs`.

use fabric::{QueueLimit, SharedLink, Span};

use super::*;

const MBIT: u64 = 1_000_000;

/// A site whose places have edges with these rates: out of the first, and into the second.
fn edges(out: Option<u64>, into: Option<u64>) -> fabric::Policy {
    let edge = |span: Span, mbit: u64| SharedLink {
        name: format!("{span:?}"),
        span,
        rate_bits_per_s: Some(mbit * MBIT),
        queue_limit: Some(QueueLimit::Packets(60)),
        is_network_card: false,
    };
    let out = out.map(|mbit| edge(Span::OutOf(place("a")), mbit));
    let into = into.map(|mbit| edge(Span::Into(place("b")), mbit));
    let delay = Rule { rate_bits_per_s: None, ..link() };
    fabric::Policy { rules: vec![delay], links: out.into_iter().chain(into).collect() }
}

/// A fault of this rate and this queue.
fn limit(mbit: u64, packets: u64) -> Conditions {
    Conditions {
        rate_bits_per_s: Some(mbit * MBIT),
        queue: Some(Queue::Packets(packets)),
        ..Conditions::default()
    }
}

fn judged(site: &fabric::Policy, wanted: &Conditions, imposed: &Conditions) -> (Verdict, Observations) {
    receipt_in(site, (wanted, World::of(site.clone(), &[rule(imposed)], 1, 0.1)), false)
}

#[test]
fn two_rates_in_series_are_shown_in_both_orders_and_no_wait_is_added_to_that_of_the_slower_one() {
    let wanted = limit(20, 50);
    for site in
        [edges(Some(60), None), edges(None, Some(60)), edges(Some(60), Some(60)), edges(Some(25), Some(21))]
    {
        let (verdict, seen) = judged(&site, &wanted, &wanted);
        assert_eq!(verdict, Verdict::Pass, "{site:?}: {seen:#?}");
        for lie in [limit(20, 100), limit(20, 25), limit(40, 50), limit(10, 50)] {
            let (verdict, seen) = judged(&site, &wanted, &lie);
            assert_ne!(verdict, Verdict::Pass, "{lie:?} on {site:?}: {seen:#?}");
        }
    }
}

#[test]
fn where_the_links_of_a_way_cannot_be_told_apart_the_receipt_says_so_and_does_not_fail() {
    let wanted = limit(20, 50);
    // The first is hardly faster; the narrowest is not the fault's; both are equally slow.
    for (site, why) in [
        (edges(Some(21), None), "hardly faster"),
        (edges(Some(10), None), "the same with and without this fault"),
        (edges(None, Some(10)), "the same with and without this fault"),
        (edges(None, Some(20)), "the same with and without this fault"),
        (edges(Some(20), None), "the same with and without this fault"),
    ] {
        let (verdict, seen) = judged(&site, &wanted, &wanted);
        assert_eq!(verdict, Verdict::Unknown, "{site:?}: {seen:#?}");
        assert!(seen.iter().any(|(_, told)| told.contains(why)), "{site:?}: {seen:#?}");
    }
}

#[test]
fn a_link_that_others_fill_is_shown_with_what_arrived_of_theirs_and_half_or_twice_of_it_is_not() {
    let wanted = limit(20, 50);
    let site = edges(None, None);
    for (share, bytes) in [(0.3, 1_400), (0.9, 1_400), (0.9, 300)] {
        let world = |imposed: &Conditions| {
            let world = World::of(site.clone(), &[rule(imposed)], 1, 0.1);
            world.with_others(share * 20e6, bytes)
        };
        let (verdict, seen) = receipt_in(&site, (&wanted, world(&wanted)), false);
        assert_eq!(verdict, Verdict::Pass, "{share} of the rate in {bytes} bytes: {seen:#?}");
        for lie in [limit(40, 50), limit(10, 50), limit(20, 100), limit(20, 25)] {
            let (verdict, seen) = receipt_in(&site, (&wanted, world(&lie)), false);
            assert_ne!(verdict, Verdict::Pass, "{lie:?} beside {share} in {bytes} bytes: {seen:#?}");
        }
    }
}

#[test]
fn a_link_of_which_others_leave_nothing_is_in_doubt_and_does_not_fail() {
    let (site, wanted) = (edges(None, None), limit(20, 50));
    for share in [1.1, 2.0, 5.0] {
        let world = World::of(site.clone(), &[rule(&wanted)], 1, 0.1).with_others(share * 20e6, 1_400);
        let (verdict, seen) = receipt_in(&site, (&wanted, world), false);
        assert_ne!(verdict, Verdict::Fail, "{share} of the rate: {seen:#?}");
    }
}

#[test]
fn a_way_that_others_fill_is_never_called_late_or_lossy() {
    let site = edges(None, Some(10));
    let wanted = all(&["delay", "loss", "duplicate", "reorder"]);
    let world = World::of(site.clone(), &[rule(&wanted)], 1, 0.1).with_others(20e6, 1_400);
    let (verdict, seen) = receipt_in(&site, (&wanted, world), false);
    assert_eq!(verdict, Verdict::Unknown, "{seen:#?}");
}

#[test]
fn a_queue_that_is_healed_is_larger_again_and_one_that_is_not_is_found_out() {
    let wanted = Conditions { queue: Some(Queue::Packets(20)), ..Conditions::default() };
    let of = |imposed: &[Rule]| {
        let world = World::of(site(), imposed, 1, 0.1);
        receipt_in(&site(), (&wanted, world), true)
    };
    let (verdict, seen) = of(&[]);
    assert_eq!(verdict, Verdict::Pass, "{seen:#?}");
    let (verdict, seen) = of(&[rule(&wanted)]);
    assert_eq!(verdict, Verdict::Fail, "{seen:#?}");
}

#[test]
fn a_rate_that_is_healed_lets_more_through_beside_others_as_well() {
    let (site, wanted) = (edges(None, Some(60)), limit(20, 50));
    for share in [0.0001, 0.9] {
        let of = |imposed: &[Rule]| {
            let world = World::of(site.clone(), imposed, 1, 0.1).with_others(share * 20e6, 1_400);
            receipt_in(&site, (&wanted, world), true)
        };
        let (verdict, seen) = of(&[]);
        assert_eq!(verdict, Verdict::Pass, "{seen:#?}");
        let (verdict, seen) = of(&[rule(&wanted)]);
        assert_ne!(verdict, Verdict::Pass, "{seen:#?}");
    }
}
