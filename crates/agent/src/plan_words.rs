//! A load as it is given to an agent.
//!
//! Owns which plans can be given away: those that need nothing of the machine they were made on.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use load::{
    Address, Arrival, Consistency, Defects, Encryption, Endpoint, LoadPlan, Part, Password, Protocol, Reads,
    Step, ThinkTime,
};
use serde::{Deserialize, Serialize};
use workload::ConfigurationError;

/// Why a load cannot be given to an agent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotForAgents {
    /// Its clients speak something else.
    #[error("load {load}: agents do not speak its database's protocol, `{protocol}`")]
    Protocol {
        load: String,
        /// The protocol's name.
        protocol: &'static str,
    },
    /// A node is reached by a path of this machine.
    #[error("load {load}: an agent cannot reach node {node}, which has no address of a network")]
    Address { load: String, node: String },
}

/// A password on its way to an agent. It has no form for people.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
struct Secret(String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(hidden)")
    }
}

/// A protocol that agents speak, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
struct ProtocolWord(Protocol);

impl TryFrom<String> for ProtocolWord {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        let known = Protocol::named(&name).filter(|protocol| protocol.reaches_existing_clusters());
        known.map(ProtocolWord).ok_or_else(|| format!("agents do not speak the protocol `{name}`"))
    }
}

impl From<ProtocolWord> for String {
    fn from(ProtocolWord(protocol): ProtocolWord) -> String {
        protocol.name().to_owned()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ReadsWord {
    Leader,
    Replicas,
    Any,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum PauseWord {
    None,
    Constant(Duration),
    Exponential(Duration),
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct StepWords {
    from_s: f64,
    clients: u32,
    rate_per_s: Option<f64>,
}

/// Defects that a test plants; none in every honest run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[allow(clippy::struct_excessive_bools)] // Each is planted by itself.
struct DefectWords {
    panics: bool,
    dies: bool,
    drops_insert: bool,
    invents_insert: bool,
}

/// A load, or a part of one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlanWords {
    name: String,
    workload: String,
    options: BTreeMap<String, String>,
    steps: Vec<StepWords>,
    is_poisson: bool,
    part: (u32, u32),
    pause: PauseWord,
    first_client: u64,
    keeps_history: bool,
    scale: u32,
    seed: u64,
    protocol: ProtocolWord,
    reads: ReadsWord,
    spreads: bool,
    endpoints: Vec<(String, SocketAddr)>,
    database: String,
    user: String,
    password: Option<Secret>,
    is_encrypted: bool,
    timeout: Duration,
    connect_timeout: Duration,
    #[serde(default)]
    defects: DefectWords,
}

impl PlanWords {
    /// As it is given away. `options` are those of its workload, `password` is what its plan has of one.
    ///
    /// # Errors
    /// When an agent could not carry it out.
    pub fn of(
        plan: &LoadPlan,
        options: &BTreeMap<String, String>,
        password: Option<String>,
    ) -> Result<PlanWords, NotForAgents> {
        if !plan.protocol.reaches_existing_clusters() {
            return Err(NotForAgents::Protocol { load: plan.name.clone(), protocol: plan.protocol.name() });
        }
        let endpoint = |endpoint: &Endpoint| match &endpoint.address {
            Address::Tcp { address, .. } => Ok((endpoint.node.clone(), *address)),
            Address::Unix(_) => {
                Err(NotForAgents::Address { load: plan.name.clone(), node: endpoint.node.clone() })
            }
        };
        let endpoints: Result<Vec<_>, NotForAgents> = plan.endpoints.iter().map(endpoint).collect();
        let step = |step: &Step| StepWords {
            from_s: step.from_s,
            clients: step.clients,
            rate_per_s: step.rate_per_s,
        };
        let Defects { panics, dies, drops_insert, invents_insert } = plan.defects;
        Ok(PlanWords {
            name: plan.name.clone(),
            workload: plan.workload.name().to_owned(),
            options: options.clone(),
            steps: plan.steps.iter().map(step).collect(),
            is_poisson: plan.arrival == Arrival::Poisson,
            part: (plan.part.number, plan.part.of),
            pause: match plan.think_time {
                ThinkTime::None => PauseWord::None,
                ThinkTime::Constant(pause) => PauseWord::Constant(pause),
                ThinkTime::Exponential(mean) => PauseWord::Exponential(mean),
            },
            first_client: plan.first_client,
            keeps_history: plan.keeps_history,
            scale: plan.scale,
            seed: plan.seed,
            protocol: ProtocolWord(plan.protocol),
            reads: match plan.reads {
                Reads::Leader => ReadsWord::Leader,
                Reads::Replicas => ReadsWord::Replicas,
                Reads::Any => ReadsWord::Any,
            },
            spreads: plan.spreads,
            endpoints: endpoints?,
            database: plan.database.clone(),
            user: plan.user.clone(),
            password: password.map(Secret),
            is_encrypted: plan.encryption != Encryption::Never,
            timeout: plan.timeout,
            connect_timeout: plan.connect_timeout,
            defects: DefectWords { panics, dies, drops_insert, invents_insert },
        })
    }

    /// The most clients at work at once.
    pub(crate) fn most_clients(&self) -> u32 {
        self.steps.iter().map(|step| step.clients).max().unwrap_or(0)
    }

    /// The workload's name.
    pub(crate) fn workload(&self) -> &str {
        &self.workload
    }

    /// The number of the first client.
    pub(crate) fn first_client(&self) -> u64 {
        self.first_client
    }

    /// How long a client waits for an answer.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// The plan.
    ///
    /// # Errors
    /// When its workload is not known here, or does not take its options.
    pub(crate) fn plan(self) -> Result<LoadPlan, ConfigurationError> {
        let step = |step: &StepWords| Step {
            from_s: step.from_s,
            clients: step.clients,
            rate_per_s: step.rate_per_s,
        };
        let DefectWords { panics, dies, drops_insert, invents_insert } = self.defects;
        let endpoint = |(node, address): (String, SocketAddr)| Endpoint { node, address: address.into() };
        Ok(LoadPlan {
            workload: workload::configured(&self.workload, &self.options)?,
            name: self.name,
            steps: self.steps.iter().map(step).collect(),
            arrival: if self.is_poisson { Arrival::Poisson } else { Arrival::Constant },
            part: Part { number: self.part.0, of: self.part.1 },
            think_time: match self.pause {
                PauseWord::None => ThinkTime::None,
                PauseWord::Constant(pause) => ThinkTime::Constant(pause),
                PauseWord::Exponential(mean) => ThinkTime::Exponential(mean),
            },
            first_client: self.first_client,
            keeps_history: self.keeps_history,
            scale: self.scale,
            seed: self.seed,
            protocol: self.protocol.0,
            reads: match self.reads {
                ReadsWord::Leader => Reads::Leader,
                ReadsWord::Replicas => Reads::Replicas,
                ReadsWord::Any => Reads::Any,
            },
            spreads: self.spreads,
            consistency: Consistency::default(),
            wait: None,
            program: None,
            endpoints: self.endpoints.into_iter().map(endpoint).collect(),
            database: self.database,
            user: self.user,
            password: self.password.map(|Secret(password)| Password::from(password)),
            encryption: if self.is_encrypted { Encryption::Preferred } else { Encryption::Never },
            timeout: self.timeout,
            connect_timeout: self.connect_timeout,
            defects: Defects { panics, dies, drops_insert, invents_insert },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> LoadPlan {
        let endpoint = |port| Endpoint {
            node: format!("n{port}"),
            address: SocketAddr::from(([127, 0, 0, 1], port)).into(),
        };
        LoadPlan {
            name: "orders".to_owned(),
            workload: workload::configured("kv", &[("keys".to_owned(), "70".to_owned())].into())
                .expect("listed"),
            steps: vec![
                Step { from_s: 0.0, clients: 7, rate_per_s: Some(90.0) },
                Step { from_s: 2.5, clients: 9, rate_per_s: Some(30.0) },
            ],
            arrival: Arrival::Poisson,
            part: Part::default(),
            think_time: ThinkTime::Exponential(Duration::from_millis(3)),
            first_client: 20_000,
            keeps_history: true,
            scale: 3,
            seed: 9,
            protocol: Protocol::Mysql,
            reads: Reads::Any,
            spreads: true,
            consistency: Consistency::default(),
            wait: None,
            program: None,
            endpoints: vec![endpoint(1), endpoint(2)],
            database: "shop".to_owned(),
            user: "loader".to_owned(),
            password: Some(Password::from("open sesame")),
            encryption: Encryption::Preferred,
            timeout: Duration::from_millis(1_500),
            connect_timeout: Duration::from_secs(5),
            defects: Defects { dies: true, ..Defects::default() },
        }
    }

    #[test]
    fn what_an_agent_is_given_is_the_same_load() {
        let (whole, options) = (plan(), [("keys".to_owned(), "70".to_owned())].into());
        let given = whole.part(Part { number: 1, of: 2 });
        let words = PlanWords::of(&given, &options, Some("open sesame".to_owned())).expect("speakable");
        let line = serde_json::to_string(&words).expect("JSON");
        assert!(line.contains(r#""protocol":"mysql""#), "{line}");
        let heard: PlanWords = serde_json::from_str(&line).expect("JSON");
        assert_eq!(heard, words);
        assert!(!format!("{heard:?}").contains("sesame"));
        let there = heard.plan().expect("known");
        assert_eq!((there.name.as_str(), there.workload.name()), ("orders", "kv"));
        assert_eq!((there.steps.clone(), there.part, there.first_client), (given.steps, given.part, 20_005));
        assert_eq!(there.steps[1], Step { from_s: 2.5, clients: 4, rate_per_s: Some(15.0) });
        assert_eq!((there.endpoints, there.password), (whole.endpoints, whole.password));
        assert_eq!(
            (there.arrival, there.think_time, there.reads),
            (whole.arrival, whole.think_time, Reads::Any)
        );
        assert_eq!((there.protocol, there.spreads, there.scale, there.seed), (Protocol::Mysql, true, 3, 9));
        assert_eq!((there.timeout, there.connect_timeout), (whole.timeout, whole.connect_timeout));
        assert_eq!(
            (there.database, there.user, there.encryption),
            (whole.database, whole.user, whole.encryption)
        );
        assert_eq!(there.defects, whole.defects);
    }

    #[test]
    fn a_load_that_needs_this_machine_is_not_given_away() {
        let refused = |plan: LoadPlan| PlanWords::of(&plan, &BTreeMap::new(), None).expect_err("refused");
        let etcd = refused(LoadPlan { protocol: Protocol::Etcd, ..plan() });
        assert_eq!(etcd, NotForAgents::Protocol { load: "orders".to_owned(), protocol: "etcd" });
        assert!(serde_json::from_str::<ProtocolWord>(r#""postgres""#).is_ok());
        assert!(serde_json::from_str::<ProtocolWord>(r#""etcd""#).is_err());
        let socket = Endpoint { node: "n9".to_owned(), address: Address::Unix("/run/s".into()) };
        let socket = refused(LoadPlan { endpoints: vec![socket], ..plan() });
        assert!(socket.to_string().contains("node n9"), "{socket}");
    }
}
