//! Roles that give a service account leave for what a run needs, as the text of a manifest.
//!
//! Owns which objects these are and how they are written. What a run needs is `permit`'s.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::permit::Need;

/// What every object of a manifest is called the work of.
const LABELS: &str = "{ app.kubernetes.io/managed-by: holdfast }";
/// The version of the API that roles belong to, and its group.
const RBAC: &str = "rbac.authorization.k8s.io/v1";
const RBAC_GROUP: &str = "rbac.authorization.k8s.io";

/// Who gets the roles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// The service account's name.
    pub name: String,
    pub namespace: String,
}

/// What is to be allowed, by namespace; the whole cluster first, where anything is to be allowed there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Roles(BTreeMap<Option<String>, Vec<Rule>>);

/// What is to be allowed with one resource.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Rule {
    resource: String,
    verbs: Vec<String>,
    reasons: Vec<String>,
}

impl Roles {
    /// Adds what is needed of a cluster in which the pods are in this namespace. What is there already is not added again.
    pub fn add(&mut self, need: &Need, of_pods: &str) {
        let rules = self.0.entry(need.scope.namespace(of_pods)).or_default();
        let known = rules.iter().position(|rule| rule.resource == need.resource);
        let number = known.unwrap_or_else(|| {
            let resource = need.resource.clone();
            rules.push(Rule { resource, verbs: Vec::new(), reasons: Vec::new() });
            rules.len() - 1
        });
        let Some(rule) = rules.get_mut(number) else { return };
        let reason = if need.is_required { "needed to" } else { "optional, to" };
        add_new(&mut rule.verbs, need.verb.clone());
        add_new(&mut rule.reasons, format!("{reason} {}", need.why));
    }

    /// The service account, and for each place a role with its binding: YAML documents.
    #[must_use]
    pub fn manifests(&self, account: &Account) -> String {
        let mut documents = vec![head("v1", "ServiceAccount", &account.name, Some(&account.namespace))];
        for (place, rules) in &self.0 {
            let rules: String = rules.iter().map(Rule::written).collect();
            let (role, name) = (kind("Role", place.as_deref()), account.role());
            documents.push(format!("{}rules:\n{rules}", head(RBAC, &role, &name, place.as_deref())));
            let binding = head(RBAC, &kind("RoleBinding", place.as_deref()), &name, place.as_deref());
            let reference = format!("{{ apiGroup: {RBAC_GROUP}, kind: {role}, name: {} }}", quoted(&name));
            documents.push(format!("{binding}roleRef: {reference}\n{}", account.subjects()));
        }
        documents.join("---\n")
    }
}

impl Account {
    /// Roles of several accounts may stand in one namespace, and those of the whole cluster stand in none.
    fn role(&self) -> String {
        format!("{}:{}", self.namespace, self.name)
    }

    fn subjects(&self) -> String {
        let (name, namespace) = (quoted(&self.name), quoted(&self.namespace));
        format!("subjects:\n  - {{ kind: ServiceAccount, name: {name}, namespace: {namespace} }}\n")
    }
}

impl Rule {
    fn written(&self) -> String {
        let (whole, part) = match self.resource.split_once('/') {
            Some((whole, part)) => (whole, format!("/{part}")),
            None => (self.resource.as_str(), String::new()),
        };
        let (resource, group) = whole.split_once('.').unwrap_or((whole, ""));
        let verbs: Vec<String> = self.verbs.iter().map(|verb| quoted(verb)).collect();
        let reasons: String = self.reasons.iter().map(|reason| format!("  # {reason}\n")).collect();
        format!(
            "{reasons}  - apiGroups: [{}]\n    resources: [{}]\n    verbs: [{}]\n",
            quoted(group),
            quoted(&format!("{resource}{part}")),
            verbs.join(", ")
        )
    }
}

fn add_new(texts: &mut Vec<String>, text: String) {
    if !texts.contains(&text) {
        texts.push(text);
    }
}

/// A kind of object, as it is called where it is for the whole cluster.
fn kind(name: &str, namespace: Option<&str>) -> String {
    if namespace.is_some() { name.to_owned() } else { format!("Cluster{name}") }
}

/// What every object begins with.
fn head(version: &str, kind: &str, name: &str, namespace: Option<&str>) -> String {
    let namespace = namespace.map(|name| format!("  namespace: {}\n", quoted(name))).unwrap_or_default();
    let name = quoted(name);
    format!("apiVersion: {version}\nkind: {kind}\nmetadata:\n  name: {name}\n{namespace}  labels: {LABELS}\n")
}

/// In quotes, as JSON and YAML have them: a namespace may be called `no` or `12`.
fn quoted(text: &str) -> String {
    Value::String(text.to_owned()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::permit::Scope;

    fn need(verb: &str, resource: &str, scope: Scope, is_required: bool) -> Need {
        let (verb, resource) = (verb.to_owned(), resource.to_owned());
        Need { verb, resource, scope, is_required, why: "look".to_owned() }
    }

    #[test]
    fn what_is_needed_of_one_resource_is_one_rule_with_its_group_and_its_part() {
        let mut roles = Roles::default();
        for verb in ["get", "list", "get"] {
            roles.add(&need(verb, "pods", Scope::Namespace, true), "no");
        }
        roles.add(&need("create", "pods/exec", Scope::Namespace, true), "no");
        let there = Scope::NamespaceOf("no".to_owned());
        roles.add(&need("watch", "leases.coordination.k8s.io", there, false), "no");
        let account = Account { name: "holdfast".to_owned(), namespace: "tests".to_owned() };
        assert_eq!(
            roles.manifests(&account),
            r#"apiVersion: v1
kind: ServiceAccount
metadata:
  name: "holdfast"
  namespace: "tests"
  labels: { app.kubernetes.io/managed-by: holdfast }
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: "tests:holdfast"
  namespace: "no"
  labels: { app.kubernetes.io/managed-by: holdfast }
rules:
  # needed to look
  - apiGroups: [""]
    resources: ["pods"]
    verbs: ["get", "list"]
  # needed to look
  - apiGroups: [""]
    resources: ["pods/exec"]
    verbs: ["create"]
  # optional, to look
  - apiGroups: ["coordination.k8s.io"]
    resources: ["leases"]
    verbs: ["watch"]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: "tests:holdfast"
  namespace: "no"
  labels: { app.kubernetes.io/managed-by: holdfast }
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: Role, name: "tests:holdfast" }
subjects:
  - { kind: ServiceAccount, name: "holdfast", namespace: "tests" }
"#
        );
    }

    #[test]
    fn what_is_needed_of_the_whole_cluster_is_a_role_of_the_cluster_without_a_namespace() {
        let mut roles = Roles::default();
        roles.add(&need("patch", "nodes", Scope::Cluster, true), "databases");
        let account = Account { name: "holdfast".to_owned(), namespace: "databases".to_owned() };
        let text = roles.manifests(&account);
        let documents: Vec<&str> = text.split("---\n").collect();
        assert_eq!(documents.len(), 3, "{text}");
        assert!(
            documents[1].contains("kind: ClusterRole\n") && !documents[1].contains("namespace:"),
            "{text}"
        );
        assert!(documents[2].contains("kind: ClusterRoleBinding\n"), "{text}");
        assert!(documents[2].contains("kind: ClusterRole, name: \"databases:holdfast\""), "{text}");
    }
}
