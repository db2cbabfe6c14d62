//! The `cluster` section: members of a database that exists, and which of them may be broken.
//!
//! Owns reading it, and the site and the database that the rest of the scenario sees in its place: one host per member, each
//! with one node. Which machine is reached how is carried out elsewhere.

use std::collections::BTreeMap;

use capabilities::Capabilities;
use history::{NodeId, PerNode};

use crate::decode::{Decoder, Record};
use crate::engines::{self, EngineFiles};
use crate::language::{AGENT, AGENT_LOST, CLUSTER, MEMBER, MOST_FREE_NAME_BYTES, REACH};
use crate::pods;
use crate::quoted::quoted;
use crate::rejection::{Findings, Spanned};
use crate::resolved::{
    Agent, AgentLost, Cluster, Database, Failover, Host, Kubernetes, Member, MemberReach, RunsOn, Site,
    Synchronous, VmPlatform, Volumes,
};
use crate::site::check_reserved;
use crate::tree::Node;
use crate::wording::{listed, shortened};

/// The region that all members stand in.
const REGION: &str = "cluster";
/// Its zone.
const ZONE: &str = "members";

/// The section as written.
pub(crate) struct ClusterDocument {
    engine: &'static Capabilities,
    members: Vec<NamedMember>,
    kubernetes: Option<Kubernetes>,
    may_break: Vec<Spanned<String>>,
    agents: Vec<Agent>,
    agent_lost: AgentLost,
    login: Login,
    ssh_config: Option<String>,
}

/// What clients say when they connect.
struct Login {
    database: String,
    user: String,
}

/// Reads the section.
pub(crate) fn decode(node: &Node, files: &EngineFiles, decoder: &mut Decoder) -> Option<ClusterDocument> {
    let record = decoder.record(node, &CLUSTER)?;
    let engine = record.get("engine").and_then(|node| decode_engine(node, files, decoder));
    let (kubernetes, members) = decode_members(&record, engine, decoder)?;
    let may_break = record.get("may-break").and_then(|node| decoder.list(node, "`may-break`", 1));
    let may_break = may_break.unwrap_or_default();
    let may_break = may_break.iter().filter_map(|node| decoder.text(node, "a member")).collect();
    let agents = record.get("agents").and_then(|node| decoder.named(node, "agents")).unwrap_or_default();
    let agents = agents.iter().filter_map(|(name, node)| decode_agent(&name.value, node, decoder)).collect();
    let lost = record.get("agent-lost").and_then(|node| decoder.word(node, "agent-lost", AGENT_LOST));
    let agent_lost = match lost.map(|lost| lost.value) {
        Some("go-on") => AgentLost::GoOn,
        _ => AgentLost::Unknown,
    };
    let mut text = |key: &'static str, what: &str| {
        record.get(key).and_then(|node| decoder.text(node, what)).map(|text| text.value)
    };
    let (database, user) = (text("database", "the database's name"), text("user", "the user"));
    let ssh_config = record.get("ssh-config").and_then(|node| decode_ssh_config(node, decoder));
    let engine = engine?;
    let login = login(engine, database, user, &record, decoder)?;
    Some(ClusterDocument { engine, members, kubernetes, may_break, agents, agent_lost, login, ssh_config })
}

/// The path of a configuration of ssh: whoever heals the cluster later may stand in another folder.
fn decode_ssh_config(node: &Node, decoder: &mut Decoder) -> Option<String> {
    let path = decoder.text(node, "the configuration of ssh")?;
    if path.value.starts_with('/') {
        return Some(path.value);
    }
    let (message, help) =
        (format!("`{}` is not an absolute path", path.value), "write the whole path, from `/` on");
    decoder.findings.add("ssh-config", path.at, message, "relative to no known folder", help);
    None
}

/// A member and where its name stands.
type NamedMember = (Spanned<String>, Member);

/// The members, each as it is written or for a pod.
fn decode_members(
    record: &Record<'_>,
    engine: Option<&Capabilities>,
    decoder: &mut Decoder,
) -> Option<(Option<Kubernetes>, Vec<NamedMember>)> {
    if let Some(node) = record.get(pods::KEY) {
        pods::refuse_machines(record, node, decoder);
        let (kubernetes, members) = pods::decode(node, engine, decoder)?.resolve();
        for (number, (name, _)) in members.iter().enumerate() {
            check_member_name(name, NodeId::new(number), decoder);
        }
        return Some((Some(kubernetes), members));
    }
    let named = record.get("members").and_then(|node| decoder.named(node, "members"));
    let mut members = Vec::new();
    for (number, (name, node)) in named?.into_iter().enumerate() {
        check_member_name(&name, NodeId::new(number), decoder);
        if let Some(member) = decode_member(&name.value, node, decoder) {
            members.push((name, member));
        }
    }
    Some((None, members))
}

/// What is missing is what is usual among servers that speak the engine's protocol.
fn login(
    engine: &Capabilities,
    database: Option<String>,
    user: Option<String>,
    record: &Record<'_>,
    decoder: &mut Decoder,
) -> Option<Login> {
    let usual = engine.protocol.usual();
    let database = database.or_else(|| usual?.database.map(str::to_owned));
    if database.is_none() && record.get("database").is_none() {
        decoder.findings.add(
            "missing-key",
            record.get("engine")?.at,
            format!("a cluster of the engine `{}` needs `database`", engine.name),
            "its servers have no usual database",
            "add `database: NAME` to `cluster`, with the name of a database that exists",
        );
    }
    let user = user.or_else(|| Some(usual?.user.to_owned()));
    Some(Login { database: database?, user: user? })
}

fn decode_engine(node: &Node, files: &EngineFiles, decoder: &mut Decoder) -> Option<&'static Capabilities> {
    let engine = engines::decode(node, files, decoder)?;
    let speaks = engine.protocol.reaches_existing_clusters();
    if !speaks {
        let able =
            capabilities::engines().iter().filter(|engine| engine.protocol.reaches_existing_clusters());
        let able: Vec<&str> = able.map(|engine| engine.name).collect();
        decoder.findings.add(
            "not-yet",
            node.at,
            format!("this version of holdfast cannot use an existing `{}` cluster", engine.name),
            "not available yet",
            format!("use one of {}, or run it in the lab", listed(&able)),
        );
    }
    speaks.then_some(engine)
}

/// Reports call the members n1, n2 ... as nodes of a lab.
fn check_member_name(name: &Spanned<String>, node: NodeId, decoder: &mut Decoder) {
    check_reserved(name, decoder);
    let digits = name.value.strip_prefix('n').filter(|rest| !rest.is_empty());
    let is_a_node = digits.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    let own = node.to_string();
    if is_a_node && name.value != own {
        let message = format!("member `{}` is called like another member's node", name.value);
        let help = format!("write `{own}` here, or choose a name that is not n and a number");
        decoder.findings.add("bad-name", name.at, message, format!("its node is {own}"), help);
    }
}

fn decode_member(name: &str, node: &Node, decoder: &mut Decoder) -> Option<Member> {
    let record = decoder.record(node, &MEMBER)?;
    let endpoint = record.get("endpoint").and_then(|node| decode_endpoint(node, decoder));
    let reach = record.get("reach").map(|node| decode_reach(node, decoder));
    let facts = record.get("facts").map(|node| values(node, "`facts`", decoder));
    Some(Member {
        name: name.to_owned(),
        endpoint: endpoint?,
        reach: match reach {
            Some(reach) => Some(reach?),
            None => None,
        },
        facts: facts.unwrap_or_else(|| Some(BTreeMap::new()))?,
    })
}

fn decode_agent(name: &str, node: &Node, decoder: &mut Decoder) -> Option<Agent> {
    let record = decoder.record(node, &AGENT)?;
    let reach = record.get("reach").and_then(|node| decode_reach(node, decoder));
    let program = record.get("program").map(|node| decoder.text(node, "the program"));
    Some(Agent {
        name: name.to_owned(),
        reach: reach?,
        program: match program {
            Some(program) => Some(program?.value),
            None => None,
        },
    })
}

fn decode_endpoint(node: &Node, decoder: &mut Decoder) -> Option<String> {
    let endpoint = decoder.text(node, "the endpoint")?;
    let fits = endpoint.value.rsplit_once(':').is_some_and(|(host, port)| {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '[' | ']');
        !host.is_empty() && host.chars().all(plain) && port.parse::<u16>().is_ok_and(|port| port > 0)
    });
    if !fits {
        decoder.findings.add(
            "bad-endpoint",
            endpoint.at,
            format!("`{}` is no address with a port", shortened(&endpoint.value)),
            "not an endpoint",
            "write it as 10.0.0.1:5432, [fd00::1]:5432 or db1.example.org:5432",
        );
    }
    fits.then_some(endpoint.value)
}

fn decode_reach(node: &Node, decoder: &mut Decoder) -> Option<MemberReach> {
    let record = decoder.record(node, &REACH)?;
    let (kind, entry) = record.first_of(REACH.exactly_one_of)?;
    if kind == "ssh" {
        let host = decoder.text(&entry.value, "the machine")?;
        return Some(MemberReach::Ssh(host.value));
    }
    let words = decoder.list(&entry.value, "`local`", 0)?;
    let words = words.iter().map(|word| decoder.text(word, "a word").map(|word| word.value));
    words.collect::<Option<Vec<String>>>().map(MemberReach::Local)
}

/// A map of values by names of the user's choice.
pub(crate) fn values(node: &Node, what: &str, decoder: &mut Decoder) -> Option<BTreeMap<String, String>> {
    let mut values = BTreeMap::new();
    for entry in decoder.entries(node, what)? {
        if entry.key.len() > MOST_FREE_NAME_BYTES {
            let message = format!("`{}` is too long for a name", shortened(&entry.key));
            decoder.findings.add("bad-name", entry.key_at, message, "too long", "write 100 signs or fewer");
            continue;
        }
        let text = decoder.text(&entry.value, &format!("`{}`", shortened(&entry.key)))?;
        values.insert(entry.key.clone(), text.value);
    }
    Some(values)
}

impl ClusterDocument {
    /// The cluster, with the site and the database that stand for it.
    pub(crate) fn resolve(self, findings: &mut Findings) -> (Cluster, Site, Database) {
        let names: PerNode<&str> = self.members.iter().map(|(name, _)| name.value.as_str()).collect();
        let mut may_break = Vec::new();
        for named in &self.may_break {
            let Some(node) = names.find(|name| *name == named.value) else {
                let message = format!("there is no member `{}`", shortened(&named.value));
                let help = format!("the members are {}", listed(&names));
                findings.add("unknown-node", named.at, message, "unknown", help);
                continue;
            };
            if self.members[node.index()].1.reach.is_none() {
                let message =
                    format!("member `{}` may be broken, and nothing says how to reach it", named.value);
                let help = "add `reach: { ssh: HOST }` to the member, or take it out of `may-break`";
                findings.add("no-reach", named.at, message, "cannot be reached", help);
            }
            may_break.push(node);
        }
        may_break.sort_unstable();
        may_break.dedup();
        let count = self.members.len();
        let host = |(name, _): &NamedMember| Host {
            region: REGION.to_owned(),
            zone: ZONE.to_owned(),
            rack: None,
            name: name.value.clone(),
        };
        let site = Site { hosts: self.members.iter().map(host).collect(), ..Site::default() };
        let database = Database {
            engine: self.engine,
            release: None,
            on: RunsOn::Nodes,
            nodes: site.hosts.ids().collect(),
            synchronous: Synchronous::Off,
            copies: u32::try_from(count).unwrap_or(u32::MAX),
            failover: Failover::None,
            settings: BTreeMap::new(),
            cpus: None,
            volumes: Volumes::Directory,
            storage: None,
            platform: VmPlatform::default(),
            interference_expected: false,
        };
        let cluster = Cluster {
            members: self.members.into_iter().map(|(_, member)| member).collect(),
            may_break,
            agents: self.agents,
            agent_lost: self.agent_lost,
            database: self.login.database,
            user: self.login.user,
            ssh_config: self.ssh_config,
            kubernetes: self.kubernetes,
        };
        (cluster, site, database)
    }
}

/// The section as a scenario has it, line by line; the key itself and what stands below it.
pub(crate) fn written(cluster: &Cluster, engine: &'static Capabilities) -> Vec<String> {
    let mut lines = vec!["cluster:".to_owned(), format!("  engine: {}", engines::written(engine))];
    match &cluster.kubernetes {
        Some(kubernetes) => lines.extend(pods::written(kubernetes, &cluster.members)),
        None => lines.extend(members_written(&cluster.members)),
    }
    if !cluster.may_break.is_empty() {
        let names = cluster.may_break.iter().filter_map(|node| cluster.members.get(*node));
        let names: Vec<String> = names.map(|member| quoted(&member.name)).collect();
        lines.push(format!("  may-break: [{}]", names.join(", ")));
    }
    if !cluster.agents.is_empty() {
        lines.push("  agents:".to_owned());
    }
    for Agent { name, reach, program } in &cluster.agents {
        let program = program.as_ref().map(|program| format!(", program: {}", quoted(program)));
        let program = program.unwrap_or_default();
        lines.push(format!("    {}: {{ {}{program} }}", quoted(name), reach_written(reach)));
    }
    if cluster.agent_lost != AgentLost::default() {
        lines.push(format!("  agent-lost: {}", cluster.agent_lost.name()));
    }
    lines.push(format!("  database: {}", quoted(&cluster.database)));
    lines.push(format!("  user: {}", quoted(&cluster.user)));
    lines.extend(cluster.ssh_config.iter().map(|path| format!("  ssh-config: {}", quoted(path))));
    lines
}

fn members_written(members: &[Member]) -> Vec<String> {
    let written = |member: &Member| {
        let reach = member.reach.as_ref().map(|reach| format!(", {}", reach_written(reach)));
        let reach = reach.unwrap_or_default();
        let facts = values_written(&member.facts);
        let (name, endpoint) = (quoted(&member.name), quoted(&member.endpoint));
        format!("    {name}: {{ endpoint: {endpoint}{reach}, facts: {facts} }}")
    };
    std::iter::once("  members:".to_owned()).chain(members.iter().map(written)).collect()
}

fn reach_written(reach: &MemberReach) -> String {
    match reach {
        MemberReach::Ssh(host) => format!("reach: {{ ssh: {} }}", quoted(host)),
        MemberReach::Local(words) => {
            let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
            format!("reach: {{ local: [{}] }}", words.join(", "))
        }
    }
}

/// Values by name, as they stand in a scenario.
pub(crate) fn values_written(values: &BTreeMap<String, String>) -> String {
    let each = |(name, value): (&String, &String)| format!("{}: {}", quoted(name), quoted(value));
    let each: Vec<String> = values.iter().map(each).collect();
    if each.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", each.join(", ")) }
}
