//! Every rule of best practice is shown facts that follow it and facts that do not.

use std::collections::{BTreeMap, BTreeSet};

use history::HostId;
use model::deployment::{Deployment, Path, Rules, Takeover};
use model::practice::{
    DiskFacts, EdgeFacts, Judgement, LAYOUT_RULES, LayoutFacts, MACHINE_RULES, MachineFacts, MirrorFacts,
    SyncFacts, apply,
};
use model::storage::{Acknowledge, Component, Promotion, Volume};
use model::{Acknowledgements, Storage};

fn path(text: &str) -> Path {
    text.split('/').map(str::to_owned).collect()
}

/// A site in which every rule about layouts is followed.
fn sound() -> LayoutFacts {
    layout("dc1/a/r1/h1* dc1/a/r2/h1* dc1/a/r3/h1* dc1/a/r3/h2", Acknowledgements::Any(1), Takeover::Restart)
}

/// `*` marks a node, `**` two; the first leads.
fn layout(site: &str, acknowledgements: Acknowledgements, takeover: Takeover) -> LayoutFacts {
    let mut nodes = Vec::new();
    let mut hosts: Vec<Path> = Vec::new();
    for (number, host) in site.split_whitespace().enumerate() {
        nodes.extend(vec![HostId::new(number); host.matches('*').count()]);
        hosts.push(path(host.trim_end_matches('*')));
    }
    let clients = vec![path("dc1/clients")];
    let rules = Rules::SingleLog { acknowledgements, takeover };
    let deployment =
        Deployment { hosts: hosts.into(), nodes: nodes.into(), clients, rules, storage: Storage::default() };
    let known_settings = ["fsync", "full_page_writes", "synchronous_commit", "autovacuum"];
    LayoutFacts {
        deployment,
        is_database: true,
        sync: None,
        known_settings: known_settings.map(str::to_owned).into(),
        settings: BTreeMap::new(),
        cpus: None,
        edges: Vec::new(),
        mirrors: None,
    }
}

/// Two nodes on four hosts, each on a mirrored volume with its other component on the host given.
fn mirrored(others: [usize; 2], acknowledge: Acknowledge, promotion: Promotion) -> LayoutFacts {
    let mut facts =
        layout("dc1/a/h1* dc1/a/h2* dc1/a/h3 dc1/a/h4", Acknowledgements::Any(1), Takeover::Restart);
    let on = |host| Component { host: HostId::new(host), disk: "d1".to_owned() };
    let volume = |(node, other): (usize, &usize)| Volume {
        components: vec![on(node), on(*other)],
        served_from: None,
        fails_with_host: true,
        acknowledge,
        promotion,
    };
    facts.deployment.storage =
        Storage { volumes: others.iter().enumerate().map(volume).collect(), ..Storage::default() };
    facts
}

fn mirrors(components: usize, outage_s: f64) -> LayoutFacts {
    let mirrors = MirrorFacts { components, rebuild_after_s: 60.0, outage_s_max: Some(outage_s) };
    LayoutFacts { mirrors: Some(mirrors), ..sound() }
}

fn set(name: &str, value: &str) -> LayoutFacts {
    LayoutFacts { settings: [(name.to_owned(), value.to_owned())].into(), ..sound() }
}

fn cpus(cpus: f64) -> LayoutFacts {
    LayoutFacts { cpus: Some(cpus), ..sound() }
}

fn edge(around: &str) -> LayoutFacts {
    let edge = EdgeFacts { name: "edge".to_owned(), around: path(around), rate_bits_per_s: 20_000_000 };
    LayoutFacts { edges: vec![edge], ..sound() }
}

fn commit_log(acknowledged_before: bool, value: &str) -> LayoutFacts {
    let setting = format!("commitlog_sync = {value}");
    let synced_by = Some("commitlog_sync: batch".to_owned());
    LayoutFacts { sync: Some(SyncFacts { acknowledged_before, setting, synced_by }), ..sound() }
}

/// Facts that follow each rule, and facts that do not.
fn layouts() -> Vec<(&'static str, LayoutFacts, LayoutFacts)> {
    use Acknowledge::{Async, Sync};
    use Acknowledgements::{All, Any, None as Off};
    use Promotion::{Forced, UpToDate};
    use Takeover::{Promote, Restart};
    let three = "dc1/a/h1* dc2/a/h1* dc3/a/h1*";
    let two = "dc1/a/h1* dc2/a/h1* dc2/b/h1*";
    // The clients of an edge around their own leader's region cross nothing; around the leader's rack they do.
    let mut outside = edge("dc1/a/r2");
    outside.deployment.clients = vec![path("dc1/clients")];
    vec![
        ("three-data-centres", layout(three, Any(1), Promote), layout(two, Any(1), Promote)),
        ("one-node-per-host", sound(), layout("dc1/a/h1** dc1/a/h2*", Any(1), Restart)),
        ("spread-over-racks", sound(), layout("dc1/a/r1/h1* dc1/a/r1/h2* dc1/a/r2/h1", Any(1), Restart)),
        (
            "acknowledged-elsewhere",
            sound(),
            layout("dc1/a/r1/h1* dc1/a/r1/h2* dc1/a/r2/h1*", Any(1), Restart),
        ),
        ("spare-standby", sound(), layout(three, All, Promote)),
        ("synchronous-before-promotion", layout(three, Any(1), Promote), layout(three, Off, Promote)),
        ("failover-on", sound(), layout(three, Any(1), Takeover::None)),
        ("spare-host", sound(), layout(three, Any(1), Restart)),
        ("four-cpus", cpus(4.0), cpus(2.0)),
        ("edge-carries-rebuild", outside, edge("dc1/a/r1")),
        ("three-replicas", sound(), layout("dc1/a/h1* dc1/a/h2*", Any(1), Promote)),
        ("mirrored-storage", mirrors(2, 10.0), mirrors(1, 10.0)),
        ("copies-apart", mirrored([2, 3], Sync, UpToDate), mirrored([1, 3], Sync, UpToDate)),
        ("rebuild-waits", mirrors(2, 10.0), mirrors(2, 90.0)),
        ("never-forced-behind", mirrored([2, 3], Async, UpToDate), mirrored([2, 3], Async, Forced)),
        ("fsync-on", set("fsync", "on"), set("fsync", "off")),
        ("members-sync", set("unsafe-no-fsync", "false"), set("unsafe-no-fsync", "true")),
        ("synced-before-acknowledged", commit_log(false, "batch"), commit_log(true, "periodic")),
        ("full-page-writes-on", sound(), set("full_page_writes", "FALSE")),
        (
            "synchronous-commit-on",
            set("synchronous_commit", "remote_apply"),
            set("synchronous_commit", "local"),
        ),
        ("autovacuum-on", set("autovacuum", "true"), set("AutoVacuum", "0")),
    ]
}

/// A machine on which every rule is followed.
fn good_machine() -> MachineFacts {
    MachineFacts {
        transparent_huge_pages: Some("always [madvise] never".to_owned()),
        swappiness: Some(1),
        swap_kib: Some(4_194_304),
        overcommit_memory: Some(2),
        zone_reclaim_mode: Some(0),
        numa_nodes: Some(2),
        governors: Some(vec!["performance".to_owned(); 2]),
        smt: Some("on".to_owned()),
        clock_source: Some("tsc".to_owned()),
        clock_synchronized: Some(true),
        clock_error_us_max: Some(1_500),
        precision_clock: Some(true),
        processors: Some(16),
        memory_kib: Some(67_108_864),
        open_files_max: Some(1_048_576),
        map_count_max: Some(1_048_575),
        sockets: Some(1),
        mounts: Some("/dev/sda / btrfs rw,compress=no,noatime 0 0\n/dev/sdb /d ext4 rw 0 0".to_owned()),
        time_service: Some("refclock PHC /dev/ptp0 poll 2\nmakestep 1 3".to_owned()),
        disks: Some(vec![
            disk("nvme0n1", false, "[none] mq-deadline"),
            disk("sda", true, "none [mq-deadline]"),
        ]),
    }
}

fn disk(name: &str, rotates: bool, scheduler: &str) -> DiskFacts {
    DiskFacts { name: name.to_owned(), rotates, scheduler: scheduler.to_owned() }
}

/// What spoils a good machine for each rule.
fn spoilt_machines() -> Vec<(&'static str, MachineFacts)> {
    let with = |spoil: &dyn Fn(&mut MachineFacts)| {
        let mut facts = good_machine();
        spoil(&mut facts);
        facts
    };
    vec![
        (
            "transparent-huge-pages",
            with(&|facts| facts.transparent_huge_pages = Some("[always] never".to_owned())),
        ),
        ("swappiness", with(&|facts| facts.swappiness = Some(60))),
        ("overcommit", with(&|facts| facts.overcommit_memory = Some(0))),
        ("numa-reclaim", with(&|facts| facts.zone_reclaim_mode = Some(1))),
        ("power-governor", with(&|facts| facts.governors = Some(vec!["powersave".to_owned()]))),
        ("hyperthreading", with(&|facts| facts.smt = Some("off".to_owned()))),
        ("clock-source", with(&|facts| facts.clock_source = Some("hpet".to_owned()))),
        ("one-time-source", with(&|facts| facts.clock_synchronized = Some(false))),
        ("clock-error", with(&|facts| facts.clock_error_us_max = Some(500_000))),
        ("precision-clock", with(&|facts| facts.precision_clock = Some(false))),
        ("memory-per-processor", with(&|facts| facts.memory_kib = Some(33_554_432))),
        ("open-files", with(&|facts| facts.open_files_max = Some(1_024))),
        ("memory-maps", with(&|facts| facts.map_count_max = Some(65_530))),
        ("one-socket", with(&|facts| facts.sockets = Some(2))),
        (
            "compression-off",
            with(&|facts| facts.mounts = Some("/dev/sda /data btrfs rw,compress=zstd:3 0 0".to_owned())),
        ),
        (
            "precision-clock-used",
            with(&|facts| facts.time_service = Some("pool ntp.example iburst".to_owned())),
        ),
        ("disk-scheduler", with(&|facts| facts.disks = Some(vec![disk("sdb", false, "none [bfq]")]))),
    ]
}

fn judgement(findings: &[model::practice::Finding], id: &str) -> Judgement {
    findings.iter().find(|finding| finding.id == id).unwrap_or_else(|| panic!("{id}")).judgement.clone()
}

#[test]
fn every_rule_about_layouts_is_followed_by_one_and_not_by_another() {
    let examples = layouts();
    for (id, follows, departs) in &examples {
        let found = judgement(&apply(LAYOUT_RULES, follows), id);
        assert!(matches!(found, Judgement::Follows(_)), "{id}: {found:?}");
        let found = judgement(&apply(LAYOUT_RULES, departs), id);
        assert!(matches!(found, Judgement::Departs(_)), "{id}: {found:?}");
    }
    let ids: Vec<&str> = LAYOUT_RULES.iter().map(|rule| rule.id).collect();
    assert_eq!(examples.iter().map(|example| example.0).collect::<Vec<_>>(), ids);
}

#[test]
fn every_rule_about_machines_is_followed_by_a_good_one_and_by_none_that_is_spoilt_for_it() {
    let good = apply(MACHINE_RULES, &good_machine());
    let spoilt = spoilt_machines();
    for (id, facts) in &spoilt {
        let found = judgement(&good, id);
        assert!(matches!(found, Judgement::Follows(_)), "{id}: {found:?}");
        let found = judgement(&apply(MACHINE_RULES, facts), id);
        assert!(matches!(found, Judgement::Departs(_)), "{id}: {found:?}");
    }
    let ids: Vec<&str> = MACHINE_RULES.iter().map(|rule| rule.id).collect();
    assert_eq!(spoilt.iter().map(|example| example.0).collect::<Vec<_>>(), ids);
}

#[test]
fn a_machine_that_tells_nothing_follows_nothing() {
    for finding in apply(MACHINE_RULES, &MachineFacts::default()) {
        assert!(matches!(finding.judgement, Judgement::Unknown(_)), "{finding:?}");
    }
}

#[test]
fn every_rule_has_a_name_of_its_own_a_source_and_a_remedy() {
    let layout = LAYOUT_RULES.iter().map(|rule| (rule.id, rule.source, rule.remedy));
    let machine = MACHINE_RULES.iter().map(|rule| (rule.id, rule.source, rule.remedy));
    let all: Vec<_> = layout.chain(machine).collect();
    let names: BTreeSet<&str> = all.iter().map(|rule| rule.0).collect();
    assert_eq!(names.len(), all.len());
    assert!(all.iter().all(|(_, source, remedy)| !source.is_empty() && !remedy.is_empty()));
}

#[test]
fn a_leader_with_enough_standbys_beside_it_does_not_wait_for_the_other_data_centre() {
    let site = layout("dc1/a/h1* dc1/b/h1* dc2/a/h1*", Acknowledgements::Any(1), Takeover::Promote);
    let found = judgement(&apply(LAYOUT_RULES, &site), "three-data-centres");
    assert_eq!(found, Judgement::DoesNotApply);
    let found = judgement(&apply(LAYOUT_RULES, &site), "acknowledged-elsewhere");
    assert!(matches!(found, Judgement::Departs(_)), "{found:?}");
}

#[test]
fn a_write_acknowledged_before_its_sync_is_told_with_the_settings_that_sync_it_first() {
    let departs =
        judgement(&apply(LAYOUT_RULES, &commit_log(true, "periodic")), "synced-before-acknowledged");
    let found = "commitlog_sync = periodic; `settings: { commitlog_sync: batch }` syncs each write first";
    assert_eq!(departs, Judgement::Departs(found.to_owned()));
    let mut unknown = commit_log(true, "periodic");
    unknown.sync = unknown.sync.map(|sync| SyncFacts { synced_by: None, ..sync });
    let departs = judgement(&apply(LAYOUT_RULES, &unknown), "synced-before-acknowledged");
    assert_eq!(departs, Judgement::Departs("commitlog_sync = periodic".to_owned()));
}
