//! Random failures and returns on a site of twelve hosts: what must hold through every one of them.

use std::collections::{BTreeMap, BTreeSet};

use history::{HostId, NodeId, PerNode, PlaceId};
use placement::{
    Bond, Capacity, Cluster, Data, Decision, Drs, Group, Holds, Host, Left, Obstacle, Rule, Strength,
    Violation, Vm, Wanted, rebalance, start, stranded_by, violations,
};

const HOSTS: usize = 12;
/// The first hosts and VMs of a small cluster.
const HOST: [HostId; 4] = [HostId::FIRST, HostId::new(1), HostId::new(2), HostId::new(3)];
const VM: [NodeId; 3] = [NodeId::FIRST, NodeId::new(1), NodeId::new(2)];
const SEQUENCES: u64 = 100_000;
const GIB: u64 = 1 << 30;

/// A stream of chance from a seed (SplitMix64: Steele, Lea, Flood, OOPSLA 2014).
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % bound as u64) as usize
    }

    fn some_of<I: PlaceId + Ord>(&mut self, count: usize, of: usize) -> Vec<I> {
        let picked: BTreeSet<I> = (0..count).map(|_| I::new(self.below(of))).collect();
        picked.into_iter().collect()
    }
}

/// What decides: given the site as it is and the VMs that are to be started.
type Core = fn(&Cluster, &[Wanted]) -> Vec<Decision>;

/// A core that forgets the rules.
fn forgetful(cluster: &Cluster, wanted: &[Wanted]) -> Vec<Decision> {
    start(&Cluster { rules: Vec::new(), ..cluster.clone() }, wanted)
}

/// A core that forgets what hosts have.
fn boundless(cluster: &Cluster, wanted: &[Wanted]) -> Vec<Decision> {
    let mut cluster = cluster.clone();
    cluster.hosts.iter_mut().for_each(|host| host.capacity = Capacity::default());
    start(&cluster, wanted)
}

/// A core that gives up on every VM but the first.
fn lazy(cluster: &Cluster, wanted: &[Wanted]) -> Vec<Decision> {
    let wait = |wanted: &Wanted| Decision::Wait {
        vm: wanted.vm,
        obstacles: cluster.hosts.ids().map(|host| (host, Obstacle::NoPower)).collect(),
    };
    let mut all = start(cluster, &wanted[..wanted.len().min(1)]);
    all.extend(wanted.iter().skip(1).map(wait));
    all
}

struct Site {
    cluster: Cluster,
    /// Of VMs with data on hosts of its own: where it is.
    data: BTreeMap<NodeId, BTreeSet<HostId>>,
    drs: Drs,
}

fn site(chance: &mut Chance) -> Site {
    let host = |number: usize| {
        let (zone, rack) = (if number < 8 { "a" } else { "b" }, format!("r{}", number / 4));
        let path = ["x".to_owned(), zone.to_owned(), rack, format!("h{number}")].to_vec();
        let memory_bytes = Some((8 + 8 * (number as u64 % 3)) * GIB);
        Host {
            path,
            capacity: Capacity { memory_bytes, vms: Some(3) },
            is_on: true,
            is_isolated: false,
            is_for_storage: false,
        }
    };
    let vms = 6 + chance.below(12);
    let vm = |number: usize| {
        let memory_bytes = (1 + chance.below(8) as u64) * GIB;
        let home = HostId::new(number % HOSTS);
        Vm { memory_bytes, rank: chance.below(3), at: None, moves_to: None, last: home, home }
    };
    let vms: PerNode<Vm> = (0..vms).map(vm).collect();
    let rule = |_| {
        let of = chance.some_of(4, vms.len());
        let bond = match chance.below(4) {
            0 => Bond::Apart { vms: of, by: Group::Host },
            1 => Bond::Apart { vms: of, by: Group::Rack },
            2 => Bond::Apart { vms: of, by: Group::Zone },
            _ => Bond::Within { vms: of, hosts: chance.some_of(6, HOSTS) },
        };
        let strength = if chance.below(3) == 0 { Strength::Should } else { Strength::Must };
        Rule { bond, strength }
    };
    let rules = (0..4).map(rule).collect();
    let on = |vm: NodeId| [vm.index() % HOSTS, (vm.index() + 5) % HOSTS].map(HostId::new).into();
    let data = chance.some_of(3, vms.len()).into_iter().map(|vm| (vm, on(vm))).collect();
    let drs = [Drs::Off, Drs::Conservative, Drs::Eager][chance.below(3)];
    Site { cluster: Cluster { hosts: (0..HOSTS).map(host).collect(), vms, rules }, data, drs }
}

impl Site {
    fn wanted(&self) -> Vec<Wanted> {
        let is_on = |host: &HostId| self.cluster.hosts[*host].is_on;
        let one = |(vm, of): (NodeId, &Vm)| {
            let data = match self.data.get(&vm) {
                None => Data::Anywhere,
                Some(on) => {
                    let holds = |(rank, host)| (host, Holds::UpToDate(rank));
                    let holds = on.iter().copied().filter(is_on).enumerate().map(holds).collect();
                    Data::On { holds }
                }
            };
            // Where it was lost counts as any other once it is back.
            let left = if is_on(&of.last) { Left::Room } else { Left::Host };
            Wanted { vm, left, data, only: None, tried: BTreeSet::new() }
        };
        self.cluster.vms.numbered().filter(|(_, of)| of.at.is_none()).map(one).collect()
    }

    /// Something happens: a host is lost, a host is back, a disk is lost.
    fn happens(&mut self, chance: &mut Chance) {
        let host = HostId::new(chance.below(HOSTS));
        if chance.below(8) == 0 {
            self.data.values_mut().for_each(|on| on.retain(|other| *other != host));
        } else if self.cluster.hosts[host].is_on {
            self.cluster.hosts[host].is_on = false;
            let lost = self.cluster.vms.iter_mut().filter(|vm| vm.at == Some(host));
            lost.for_each(|vm| vm.at = None);
        } else {
            self.cluster.hosts[host].is_on = true;
        }
    }

    /// Carries a decision out; why it should not have been made.
    fn carry_out(&mut self, decision: &Decision) -> Result<(), String> {
        match decision {
            Decision::Start { vm, host, reason } => {
                if self.cluster.vms[*vm].at.is_some() {
                    return Err(format!("{decision:?}: it runs"));
                }
                if reason.candidates == 0 || (reason.candidates > 1) != reason.better.is_some() {
                    return Err(format!("{decision:?}: no reason"));
                }
                self.put(*vm, *host)
            }
            Decision::Wait { vm, obstacles } => {
                let told: BTreeSet<HostId> = obstacles.iter().map(|(host, _)| *host).collect();
                if told.len() != HOSTS {
                    return Err(format!("{decision:?}: no reason for each host"));
                }
                match self.cluster.hosts.ids().find(|host| self.has_room(*vm, *host)) {
                    Some(host) => Err(format!("{decision:?}: host {} could have it", host.index())),
                    None => Ok(()),
                }
            }
            Decision::Move { vm, from, to, .. } => {
                if self.cluster.vms[*vm].at != Some(*from) {
                    return Err(format!("{decision:?}: it is not there"));
                }
                self.put(*vm, *to)
            }
        }
    }

    fn put(&mut self, vm: NodeId, host: HostId) -> Result<(), String> {
        if !self.cluster.hosts[host].is_on {
            return Err(format!("VM {vm} on host {}, which has no power", host.index()));
        }
        self.cluster.vms[vm].at = Some(host);
        self.cluster.vms[vm].last = host;
        let found = violations(&self.cluster);
        if found.is_empty() { Ok(()) } else { Err(format!("VM {vm} on host {}: {found:?}", host.index())) }
    }

    /// Whether nothing would be violated with the VM there, asked of the one who looks from outside.
    fn has_room(&self, vm: NodeId, host: HostId) -> bool {
        let data_lost =
            self.data.get(&vm).is_some_and(|on| !on.iter().any(|at| self.cluster.hosts[*at].is_on));
        let mut cluster = self.cluster.clone();
        cluster.vms[vm].at = Some(host);
        cluster.hosts[host].is_on && !data_lost && violations(&cluster).is_empty()
    }
}

/// One sequence of failures and returns; what does not hold. Gives how many starts, waits and moves there were.
fn sequence(seed: u64, core: Core) -> Result<[usize; 3], String> {
    let mut chance = Chance(seed);
    let mut site = site(&mut chance);
    let mut counts = [0; 3];
    for _ in 0..1 + chance.below(10) {
        let wanted = site.wanted();
        let decisions = core(&site.cluster, &wanted);
        let of: BTreeSet<NodeId> = wanted.iter().map(|wanted| wanted.vm).collect();
        let decided = decisions.iter().map(|decision| match decision {
            Decision::Start { vm, .. } | Decision::Wait { vm, .. } | Decision::Move { vm, .. } => *vm,
        });
        if decided.collect::<BTreeSet<NodeId>>() != of || decisions.len() != of.len() {
            return Err(format!("seed {seed}: not a decision for each: {decisions:?}"));
        }
        for decision in decisions {
            site.carry_out(&decision).map_err(|why| format!("seed {seed}: {why}"))?;
            counts[usize::from(matches!(decision, Decision::Wait { .. }))] += 1;
        }
        for decision in rebalance(&site.cluster, site.drs) {
            site.carry_out(&decision).map_err(|why| format!("seed {seed}: {why}"))?;
            counts[2] += 1;
        }
        site.happens(&mut chance);
    }
    Ok(counts)
}

#[test]
fn through_any_failures_rules_and_capacities_hold_and_what_could_be_placed_is_placed() {
    let threads = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
    let part = |first: u64| {
        let mut counts = [0; 3];
        for seed in (first..SEQUENCES).step_by(threads as usize) {
            let of = sequence(seed, start).expect("all of it holds");
            counts.iter_mut().zip(of).for_each(|(all, more)| *all += more);
        }
        counts
    };
    let counts = std::thread::scope(|scope| {
        let parts: Vec<_> = (0..threads).map(|first| scope.spawn(move || part(first))).collect();
        parts.into_iter().fold([0; 3], |mut counts, part| {
            let of = part.join().expect("all of it holds");
            counts.iter_mut().zip(of).for_each(|(all, more)| *all += more);
            counts
        })
    });
    eprintln!("{SEQUENCES} sequences: starts, waits, moves {counts:?}");
    assert!(counts.iter().all(|count| *count > 10_000), "some never happened: {counts:?}");
}

/// Of 200 seeds, why the first fails.
fn caught(core: Core) -> String {
    (0..200).find_map(|seed| sequence(seed, core).err()).expect("nothing was caught")
}

#[test]
fn a_core_that_forgets_its_rules_its_capacities_or_its_vms_is_caught() {
    let rules = caught(forgetful);
    assert!(rules.contains("Together {") || rules.contains("Outside {"), "{rules}");
    let boundless = caught(boundless);
    assert!(boundless.contains("Memory {") || boundless.contains("Full {"), "{boundless}");
    assert!(caught(lazy).contains("could have it"), "{}", caught(lazy));
}

/// Hosts of 10 GiB in racks of two, and a VM of each size in GiB on the first of them.
fn small(hosts: usize, sizes: &[u64], rules: Vec<Rule>) -> Cluster {
    let host = |number: usize| {
        let path = ["x", "a", ["r0", "r1", "r2"][number / 2], ["h0", "h1"][number % 2]];
        let capacity = Capacity { memory_bytes: Some(10 * GIB), vms: None };
        Host {
            path: path.map(str::to_owned).to_vec(),
            capacity,
            is_on: true,
            is_isolated: false,
            is_for_storage: false,
        }
    };
    let vm = |(home, size): (&HostId, &u64)| Vm {
        memory_bytes: size * GIB,
        rank: 0,
        at: Some(*home),
        moves_to: None,
        last: *home,
        home: *home,
    };
    let vms = HOST.iter().zip(sizes).map(vm).collect();
    Cluster { hosts: (0..hosts).map(host).collect(), vms, rules }
}

fn apart(vms: &[NodeId], by: Group, strength: Strength) -> Rule {
    Rule { bond: Bond::Apart { vms: vms.to_vec(), by }, strength }
}

#[test]
fn what_has_no_room_after_a_failure_is_told_with_what_stands_against_each_host() {
    let cluster = small(3, &[6, 6, 3], Vec::new());
    assert_eq!(stranded_by(&cluster, &[HOST[2]]), []);
    assert_eq!(stranded_by(&cluster, &[HOST[0]]), []);
    let both = stranded_by(&cluster, &[HOST[0], HOST[1]]);
    let short = Obstacle::Memory { free_bytes: GIB, needed_bytes: 6 * GIB };
    assert_eq!(both.len(), 1);
    assert_eq!((both[0].vm, both[0].obstacles[2]), (VM[1], (HOST[2], short)));
    let rules = vec![apart(&[VM[0], VM[1], VM[2]], Group::Host, Strength::Must)];
    let alone = stranded_by(&small(3, &[1, 1, 1], rules), &[HOST[0]]);
    assert_eq!(alone[0].obstacles[1], (HOST[1], Obstacle::Rule { rule: 0, with: Some(VM[1]) }));
}

#[test]
fn the_first_in_rank_is_started_first_and_a_rule_that_should_hold_gives_way() {
    let mut cluster = small(3, &[6, 6, 6], vec![apart(&[VM[0], VM[2]], Group::Rack, Strength::Should)]);
    cluster.vms[VM[1]].rank = 1;
    cluster.vms[VM[0]].at = None;
    cluster.vms[VM[1]].at = None;
    cluster.vms[VM[2]].at = None;
    cluster.hosts[HOST[0]].is_on = false;
    let wanted =
        |vm| Wanted { vm, left: Left::Room, data: Data::Anywhere, only: None, tried: BTreeSet::new() };
    let decisions = start(&cluster, &[wanted(VM[1]), wanted(VM[0]), wanted(VM[2])]);
    let starts: Vec<(NodeId, Option<HostId>)> = decisions
        .iter()
        .map(|decision| match decision {
            Decision::Start { vm, host, .. } => (*vm, Some(*host)),
            Decision::Wait { vm, .. } | Decision::Move { vm, .. } => (*vm, None),
        })
        .collect();
    assert_eq!(starts, [(VM[0], Some(HOST[1])), (VM[2], Some(HOST[2])), (VM[1], None)]);
}

#[test]
fn conservative_moves_repair_rules_and_go_home_and_eager_ones_even_out() {
    let mut cluster = small(4, &[1, 1, 1, 1], vec![apart(&[VM[0], VM[1]], Group::Host, Strength::Must)]);
    cluster.vms[VM[1]].at = Some(HOST[0]);
    assert_eq!(
        violations(&cluster),
        [Violation::Together { rule: 0, one: VM[0], other: VM[1] }],
        "both are on the first host"
    );
    let moved = |cluster: &Cluster, drs| -> Vec<(NodeId, HostId)> {
        let to = |decision| match decision {
            Decision::Move { vm, to, .. } => (vm, to),
            other => panic!("{other:?}"),
        };
        rebalance(cluster, drs).into_iter().map(to).collect()
    };
    assert_eq!(moved(&cluster, Drs::Off), []);
    assert_eq!(moved(&cluster, Drs::Conservative)[0], (VM[0], HOST[1]));
    let mut crowded = small(4, &[1, 1, 1], Vec::new());
    crowded.vms.iter_mut().for_each(|vm| vm.at = Some(HOST[3]));
    crowded.hosts[HOST[1]].is_on = false;
    crowded.hosts[HOST[2]].is_on = false;
    assert_eq!(moved(&crowded, Drs::Conservative), [(VM[0], HOST[0])]);
    crowded.vms[VM[0]].at = Some(HOST[3]);
    crowded.vms[VM[0]].home = HOST[1];
    assert_eq!(moved(&crowded, Drs::Eager), [(VM[0], HOST[0])]);
}

#[test]
fn a_vm_that_moves_takes_room_on_both_hosts_and_is_left_alone() {
    let rules = vec![apart(&[VM[0], VM[2]], Group::Host, Strength::Must)];
    let mut cluster = small(3, &[6, 6, 1], rules);
    cluster.vms[VM[0]].moves_to = Some(HOST[2]);
    (cluster.vms[VM[1]].at, cluster.vms[VM[2]].at) = (None, None);
    cluster.hosts[HOST[1]].is_on = false;
    let wanted =
        |vm| Wanted { vm, left: Left::Host, data: Data::Anywhere, only: None, tried: BTreeSet::new() };
    let waits = |vm: NodeId, here: Obstacle, there: Obstacle| Decision::Wait {
        vm,
        obstacles: vec![(HOST[0], here), (HOST[1], Obstacle::NoPower), (HOST[2], there)],
    };
    let short = Obstacle::Memory { free_bytes: 4 * GIB, needed_bytes: 6 * GIB };
    assert_eq!(start(&cluster, &[wanted(VM[1])]), [waits(VM[1], short, short)], "no room on either");
    let rule = Obstacle::Rule { rule: 0, with: Some(VM[0]) };
    cluster.vms[VM[2]].last = HOST[1];
    assert_eq!(start(&cluster, &[wanted(VM[2])]), [waits(VM[2], rule, rule)], "the rule holds on both");
    cluster.vms[VM[0]].home = HOST[2];
    assert_eq!(rebalance(&cluster, Drs::Eager), [], "it goes there already");
    cluster.vms[VM[0]].moves_to = None;
    assert!(
        matches!(start(&cluster, &[wanted(VM[1])])[..], [Decision::Start { host, .. }] if host == HOST[2])
    );
    assert_eq!(rebalance(&cluster, Drs::Eager).len(), 1);
}

#[test]
fn nodes_are_not_moved_to_hosts_that_are_there_for_storage() {
    let mut cluster = small(3, &[1, 1], Vec::new());
    cluster.vms[VM[1]].home = HOST[1];
    (cluster.vms[VM[0]].at, cluster.vms[VM[1]].at) = (Some(HOST[1]), Some(HOST[1]));
    cluster.vms[VM[0]].home = HOST[0];
    cluster.hosts[HOST[0]].is_on = false;
    let to = |cluster: &Cluster| match rebalance(cluster, Drs::Eager)[..] {
        [Decision::Move { vm, to, .. }] => Some((vm, to)),
        _ => None,
    };
    assert_eq!(to(&cluster), Some((VM[0], HOST[2])));
    cluster.hosts[HOST[2]].is_for_storage = true;
    assert_eq!(to(&cluster), None);
}
