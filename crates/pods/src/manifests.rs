//! The service account and the roles with which a scenario of pods may be run, as a manifest. Asks no cluster.
//!
//! Owns which scenarios' needs are put together, and whom they are given to. How roles are written is `kubernetes`' business.

use std::collections::BTreeSet;

use kubernetes::{Account, Roles};
use scenario::{Kubernetes, Scenario};

use crate::leave::{Needed, needed};

/// Whom the roles are for, and which of them are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Name of the service account.
    pub account: String,
    /// Its namespace; that of the pods where absent.
    pub namespace: Option<String>,
    /// Whether what is optional is left out.
    pub is_only_needed: bool,
}

/// Roles for scenarios.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifests {
    /// YAML documents.
    pub text: String,
    /// Command files of the scenarios' own, whose commands may need more.
    pub not_known: Vec<String>,
}

/// The roles that these scenarios need together, as the combinations of a matrix do; none where none of them is of pods.
#[must_use]
pub fn manifests(scenarios: &[&Scenario], wanted: &Wanted) -> Option<Manifests> {
    let of_pods: Vec<(&Scenario, &Kubernetes)> =
        scenarios.iter().filter_map(|&scenario| Some((scenario, kubernetes_of(scenario)?))).collect();
    let (_, first) = of_pods.first()?;
    let namespace = wanted.namespace.as_ref().unwrap_or(&first.namespace);
    let account = Account { name: wanted.account.clone(), namespace: namespace.clone() };
    let (mut roles, mut all_not_known) = (Roles::default(), BTreeSet::new());
    for (scenario, kubernetes) in &of_pods {
        let Needed { needs, not_known } = needed(scenario);
        let needs = needs.iter().filter(|need| need.is_required || !wanted.is_only_needed);
        needs.for_each(|need| roles.add(need, &kubernetes.namespace));
        all_not_known.extend(not_known);
    }
    Some(Manifests { text: roles.manifests(&account), not_known: all_not_known.into_iter().collect() })
}

fn kubernetes_of(scenario: &Scenario) -> Option<&Kubernetes> {
    scenario.cluster.as_ref()?.kubernetes.as_ref()
}
