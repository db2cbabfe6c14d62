//! The way of a scenario file: text, tree, overrides, sections, scenario.
//!
//! Owns the order of these steps and the few values at the top of the file.

use capabilities::Capabilities;
use history::HostId;

use crate::cluster::{self, ClusterDocument};
use crate::decode::{Decoder, Record};
use crate::engines::{self, EngineFiles, NamedFile};
use crate::faults::receipts::Network;
use crate::faults::{Surroundings, Whereabouts};
use crate::file::{About, EXTERNAL, KUBERNETES_TARGET, MOST_SEED, SCENARIO, TARGETS};
use crate::language::LANGUAGE;
use crate::matrix::{self, Matrix, MatrixDocument};
use crate::places::{self, Places};
use crate::rejection::{Finding, Findings, Rejection, Spanned, Spot, Text};
use crate::resolved::{Cluster, Database, Site, Volumes};
use crate::scenario::Scenario;
use crate::tree::{self, Node, Value};
use crate::{connections, database, disks, expect, loads, loads_together, overrides, pods, schedule, site};

/// What the last run is found under, beside the folder of each scenario's runs.
const LATEST: &str = "latest";

/// A scenario's text. The name is only used for messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// What to call it: the path the user gave.
    pub name: String,
    /// The YAML text.
    pub text: String,
}

/// What a scenario file asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The scenario as it is without its matrix.
    pub scenario: Scenario,
    /// The matrix it is to be run over, when it has one.
    pub matrix: Option<Matrix>,
}

/// Reads a scenario; of one with a matrix, the scenario without it. `overrides` are the `--set path=value` of the command
/// line, applied in order before anything is checked.
///
/// # Errors
/// When the text is not a sound scenario, with any of the settings its matrix has: every problem found, each pointing into
/// the file or the override it is in.
pub fn parse(source: &Source, overrides: &[(String, String)]) -> Result<Scenario, Rejection> {
    plan(source, overrides).map(|plan| plan.scenario)
}

/// Reads a scenario with its matrix.
///
/// # Errors
/// As [`parse`].
pub fn plan(source: &Source, overrides: &[(String, String)]) -> Result<Plan, Rejection> {
    plan_with(source, overrides, &EngineFiles::new())
}

/// The files that a scenario names for its engine, to be read for [`plan_with`]; none of a text that is not YAML.
#[must_use]
pub fn engine_files(source: &Source, overrides: &[(String, String)]) -> Vec<NamedFile> {
    let root = tree_of(&texts(source, overrides), overrides, &mut Findings::default());
    root.map_or_else(Vec::new, |root| engines::named_in(&root))
}

/// Reads a scenario with its matrix, the engines that it names by a file being at hand.
///
/// # Errors
/// As [`parse`].
pub fn plan_with(
    source: &Source,
    overrides: &[(String, String)],
    files: &EngineFiles,
) -> Result<Plan, Rejection> {
    let texts = texts(source, overrides);
    let mut findings = Findings::default();
    read(&texts, overrides, files, &mut findings).filter(|_| findings.is_empty()).ok_or_else(|| {
        debug_assert!(!findings.is_empty(), "refused without a reason");
        findings.into_rejection(&texts, &LANGUAGE)
    })
}

/// Something wrong with a value that only shows outside of the scenario: a file that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Stable code of this kind of problem: `script-file`.
    pub code: &'static str,
    /// What is wrong.
    pub message: String,
    /// A few words under the caret.
    pub label: String,
    /// What to write instead.
    pub help: String,
}

/// Refuses the value at this path (`loads.0.options.scripts.1.file`), with the caret under it in the text that it is from.
/// Nothing when there is no such value.
#[must_use]
pub fn point_at(
    source: &Source,
    overrides: &[(String, String)],
    path: &str,
    refusal: Refusal,
) -> Option<Rejection> {
    let texts = texts(source, overrides);
    let mut findings = Findings::default();
    let root = tree_of(&texts, overrides, &mut findings)?;
    let at = root.value_at(path)?.at;
    let Refusal { code, message, label, help } = refusal;
    findings.add(code, at, message, label, help);
    Some(findings.into_rejection(&texts, &LANGUAGE))
}

/// Refuses a fault, with the caret under its command file in the text that it is from.
#[must_use]
pub fn point_at_fault(
    source: &Source,
    overrides: &[(String, String)],
    at: Whereabouts,
    refusal: Refusal,
) -> Rejection {
    let mut findings = Findings::default();
    let Refusal { code, message, label, help } = refusal;
    findings.add(code, at.0, message, label, help);
    findings.into_rejection(&texts(source, overrides), &LANGUAGE)
}

fn texts(source: &Source, overrides: &[(String, String)]) -> Vec<Text> {
    let file = Text { name: source.name.clone(), text: source.text.clone() };
    std::iter::once(file).chain(overrides.iter().map(|(path, value)| overrides::text(path, value))).collect()
}

/// The file with the overrides put into it.
fn tree_of(texts: &[Text], overrides: &[(String, String)], findings: &mut Findings) -> Option<Node> {
    let file = texts.first()?;
    let mut root = match tree::read(&file.text, 0, 0, &LANGUAGE) {
        Ok(root) => root,
        Err(finding) => {
            if finding.code == "not-yaml" {
                *findings = before_break(&file.text, finding.at.start, &EngineFiles::new());
            }
            findings.push(*finding);
            return None;
        }
    };
    for (index, ((path, _), text)) in overrides.iter().zip(texts.iter().skip(1)).enumerate() {
        if let Err(finding) = overrides::apply(&mut root, path, text, index + 1) {
            findings.push(*finding);
        }
    }
    findings.is_empty().then_some(root)
}

/// What is wrong with the sections that end before the byte at which the text stops being YAML, so that these mistakes need
/// no round of their own. What is missing may stand behind the break: that is not told.
fn before_break(text: &str, broken: usize, files: &EngineFiles) -> Findings {
    let mut told = Findings::default();
    let starts_section = |at: &usize| text[*at..].starts_with(|c: char| c.is_ascii_lowercase());
    let line_starts = text.match_indices('\n').map(|(at, _)| at + 1).take_while(|at| *at <= broken);
    let Some(end) = line_starts.filter(starts_section).last() else { return told };
    let Ok(root) = tree::read(&text[..end], 0, 0, &LANGUAGE) else { return told };
    let mut decoder = Decoder::new(&LANGUAGE);
    decode(&root, files, &mut decoder);
    let is_missing = |finding: &Finding| finding.code == "missing-key";
    decoder.findings.into_all().into_iter().filter(|one| !is_missing(one)).for_each(|one| told.push(one));
    told
}

fn read(
    texts: &[Text],
    overrides: &[(String, String)],
    files: &EngineFiles,
    findings: &mut Findings,
) -> Option<Plan> {
    let mut root = tree_of(texts, overrides, findings)?;
    let mut decoder = Decoder::new(&LANGUAGE);
    let (document, matrix) = decode(&root, files, &mut decoder);
    *findings = decoder.findings;
    if !findings.is_empty() {
        misnamed_places(&root, document, findings);
        return None;
    }
    let scenario = document?.resolve(findings)?;
    let matrix = match matrix {
        Some(matrix) if findings.is_empty() => {
            if let Value::Map(entries) = &mut root.value {
                entries.retain(|entry| entry.key != "matrix");
            }
            Some(matrix.resolve(&root, |root, findings| one(root, files, findings), findings)?)
        }
        _ => None,
    };
    Some(Plan { scenario, matrix })
}

/// Adds places that there are not to what is wrong elsewhere, so that they need no round of their own. Only of a site that is itself
/// in order, on which alone it depends which places there are.
fn misnamed_places(root: &Node, document: Option<Document>, findings: &mut Findings) {
    let (Some(site), Some(document)) = (root.value_at("site"), document) else { return };
    let mut alone = Decoder::new(&LANGUAGE);
    site::decode(site, &mut alone);
    if !alone.findings.is_empty() {
        return;
    }
    let mut more = Findings::default();
    let _ = document.resolve(&mut more);
    let is_of_places = |finding: &Finding| places::CODES.contains(&finding.code);
    more.into_all().into_iter().filter(is_of_places).for_each(|finding| findings.push(finding));
}

/// One scenario from a tree that holds no matrix.
fn one(root: &Node, files: &EngineFiles, findings: &mut Findings) -> Option<Scenario> {
    let mut decoder = Decoder::new(&LANGUAGE);
    let (document, _) = decode(root, files, &mut decoder);
    *findings = decoder.findings;
    if !findings.is_empty() {
        return None;
    }
    document?.resolve(findings).filter(|_| findings.is_empty())
}

/// The file's sections, each read and none yet held against another.
struct Document {
    name: String,
    about: About,
    seed: Option<u64>,
    venue: VenueDocument,
    loads: Vec<loads::LoadDocument>,
    schedule: Vec<schedule::PhaseDocument>,
    expect: Vec<expect::ExpectationDocument>,
}

/// Where it takes place, as written.
enum VenueDocument {
    /// In the lab.
    Lab(Box<(site::SiteDocument, database::DatabaseDocument)>),
    /// On a cluster that exists.
    Cluster(Box<ClusterDocument>),
}

fn decode(
    root: &Node,
    files: &EngineFiles,
    decoder: &mut Decoder,
) -> (Option<Document>, Option<MatrixDocument>) {
    let Some(record) = decoder.record(root, &SCENARIO) else { return (None, None) };
    let matrix = record.get("matrix").and_then(|node| matrix::decode(node, decoder));
    (decode_sections(&record, files, decoder), matrix)
}

fn decode_sections(record: &Record<'_>, files: &EngineFiles, decoder: &mut Decoder) -> Option<Document> {
    let name = record.get("name").and_then(|node| decode_name(node, decoder));
    let seed = record.get("seed").and_then(|node| decoder.count(node, "the seed", 0, MOST_SEED));
    let venue = decode_venue(record, files, decoder);
    let loads = record.get("loads").and_then(|node| loads::decode(node, decoder));
    let workloads: Vec<&str> = loads.iter().flatten().map(loads::LoadDocument::workload).collect();
    let about = About::decode(record, &workloads, decoder);
    let schedule = record.get("schedule").and_then(|node| schedule::decode(node, decoder));
    let expect = record.get("expect").and_then(|node| expect::decode(node, decoder));
    Some(Document {
        name: name?.value,
        about,
        seed: seed.map(|seed| seed.value),
        venue: venue?,
        loads: loads?,
        schedule: schedule?,
        expect: expect.unwrap_or_default(),
    })
}

fn decode_name(node: &Node, decoder: &mut Decoder) -> Option<Spanned<String>> {
    let name = decoder.name(node, "the scenario's name")?;
    if name.value == LATEST {
        let message = format!("`{LATEST}` cannot be a scenario's name");
        let help = format!("choose another name: `{LATEST}` is the link to the last run, in the same folder");
        decoder.findings.add("bad-name", name.at, message, "reserved", help);
    }
    Some(name)
}

/// `target` with what it takes: `site` and `database`, or `cluster`.
fn decode_venue(record: &Record<'_>, files: &EngineFiles, decoder: &mut Decoder) -> Option<VenueDocument> {
    let target = record.get("target").and_then(|node| decoder.word(node, "target", TARGETS));
    let target = target.map(|target| target.value);
    let cluster = record.get("cluster").and_then(|node| cluster::decode(node, files, decoder));
    let site = record.get("site").and_then(|node| site::decode(node, decoder));
    let database = record.get("database").and_then(|node| database::decode(node, files, decoder));
    match (record.key_at("cluster"), record.key_at("site").or(record.key_at("database"))) {
        // Both is told already.
        (Some(_), Some(_)) => {}
        (Some(at), None) => check_target_of_cluster(record, target, at, decoder),
        (None, Some(at)) => {
            if let Some(target @ (EXTERNAL | KUBERNETES_TARGET)) = target {
                let message = format!("`target: {target}` takes a `cluster`, not a `site` and a `database`");
                let help = "name the members under `cluster`, or write `target: lab`";
                decoder.findings.add("target", at, message, "made by the lab alone", help);
            }
        }
        _ => {}
    }
    match cluster {
        Some(cluster) => Some(VenueDocument::Cluster(Box::new(cluster))),
        None => Some(VenueDocument::Lab(Box::new((site?, database?)))),
    }
}

/// Whether a cluster is what the target takes: pods where it is Kubernetes, else machines.
fn check_target_of_cluster(record: &Record<'_>, target: Option<&str>, at: Spot, decoder: &mut Decoder) {
    let has = |key: &str| record.get("cluster").is_some_and(|cluster| pods::cluster_has(cluster, key));
    let (message, label, help) = match target {
        Some(KUBERNETES_TARGET) if has("members") => (
            "`target: kubernetes` takes a `cluster` with `kubernetes`, not with `members`",
            "of machines",
            "name the pods under `cluster.kubernetes`, or write `target: external`",
        ),
        Some(KUBERNETES_TARGET) => return,
        _ if has(pods::KEY) => (
            "a `cluster` with `kubernetes` needs `target: kubernetes`",
            "of pods",
            "write `target: kubernetes`, or name the members under `members`",
        ),
        Some(EXTERNAL) => return,
        _ => (
            "a `cluster` needs `target: external`",
            "exists already",
            "add `target: external`, so that nobody takes it for a lab",
        ),
    };
    decoder.findings.add("target", at, message, label, help);
}

/// Where a scenario takes place: a site and a database that the lab makes, or that stand for a cluster that exists.
struct Venue {
    site: Site,
    places: Places,
    engine: &'static Capabilities,
    /// None where it is not sound.
    database: Option<Database>,
    session_limit_at: Option<Spot>,
    cluster: Option<Cluster>,
}

impl VenueDocument {
    fn resolve(self, findings: &mut Findings) -> Option<Venue> {
        match self {
            VenueDocument::Lab(lab) => made(lab.0, lab.1, findings),
            VenueDocument::Cluster(cluster) => {
                let (cluster, site, database) = cluster.resolve(findings);
                Some(Venue {
                    places: Places::new(&site.hosts),
                    site,
                    engine: database.engine,
                    database: Some(database),
                    session_limit_at: None,
                    cluster: Some(cluster),
                })
            }
        }
    }
}

/// What the lab makes.
fn made(
    site: site::SiteDocument,
    database: database::DatabaseDocument,
    findings: &mut Findings,
) -> Option<Venue> {
    let hosts = site.hosts(findings)?;
    let places = Places::new(&hosts);
    let links = site.links(&places, findings);
    let edges = site.edges(&places, &hosts, findings);
    let engine = database.engine();
    let session_limit_at = database.session_limit_at();
    let database = database.resolve(&hosts, (&places, &site.storage_classes), site.ip, findings);
    disks::refuse_without_disks(site.sync_at, are_on_disks(database.as_ref()), findings);
    let nodes = database.as_ref().map_or(0, |database| database.nodes.len());
    site::refuse_too_many_places(site.path.as_ref(), hosts.len() + nodes, findings);
    let site::SiteDocument { busy_poll, ip, disks, path, .. } = site;
    let network_path = path.map(|path| path.value).unwrap_or_default();
    let site = Site { hosts, links, edges, busy_poll, ip, disks, network_path };
    Some(Venue { site, places, engine, database, session_limit_at, cluster: None })
}

/// Whether volumes lie on the lab's disks, as far as is known.
fn are_on_disks(database: Option<&Database>) -> bool {
    database.map(|database| database.volumes) != Some(Volumes::Directory)
}

impl Document {
    fn resolve(self, findings: &mut Findings) -> Option<Scenario> {
        let Venue { site, places, engine, database, session_limit_at, cluster } =
            self.venue.resolve(findings)?;
        let hosts = &site.hosts;
        let of_node = |host: &HostId| hosts.get(*host);
        let leader = database.as_ref().and_then(|database| database.nodes.first()).and_then(of_node);
        let nodes = database.as_ref().map(|database| database.nodes.iter().filter_map(of_node).collect());
        let surroundings = Surroundings {
            places: &places,
            hosts,
            nodes,
            disks: site.disks,
            volumes_on_disks: are_on_disks(database.as_ref()),
            engine,
            on: database.as_ref().map(|database| database.on).unwrap_or_default(),
            network: Network { links: &site.links, edges: &site.edges },
            cluster: cluster.as_ref(),
        };
        let before = findings.len();
        let schedule = schedule::resolve(self.schedule, &surroundings, findings);
        let region = leader.map(|host| host.region.as_str());
        loads::check_language(&self.loads, engine, findings);
        let nodes = database.as_ref().map(|database| database.nodes.len());
        if let Some(database) = &database {
            self.loads.iter().for_each(|load| load.check_operations(database, findings));
        }
        loads::check_reads(&self.loads, engine, nodes, findings);
        let isolation = database.as_ref().and_then(|database| database.platform.isolation);
        loads_together::check(&self.loads, (engine, isolation), &schedule, findings);
        if cluster.is_some() {
            loads::check_on_a_cluster(&self.loads, region, findings);
        }
        let loads = loads::resolve(self.loads, (region, cluster.as_ref()), &places, &schedule, findings);
        // What is expected is only held against loads and faults that could themselves be read.
        let sound = findings.len() == before && database.is_some();
        let of_lab = database.as_ref().filter(|_| cluster.is_none());
        let expect = match sound {
            true => expect::resolve(self.expect, (&loads, &schedule), of_lab, findings),
            false => Vec::new(),
        };
        let scenario = Scenario {
            name: self.name,
            about: self.about,
            seed: self.seed,
            cluster,
            site,
            database: database?,
            loads,
            schedule,
            expect,
        };
        connections::check(&scenario, session_limit_at, findings);
        Some(scenario)
    }
}
