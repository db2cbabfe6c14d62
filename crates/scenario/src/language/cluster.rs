//! Keys of `cluster`: a database that exists, in place of a site and a database that the lab makes.

use super::shapes::{ENGINE, Fields, MOST_PODS, Shape, choice, optional, plain, required};

/// `cluster`.
pub(crate) static CLUSTER: Fields = choice(
    "a cluster",
    &[
        required("engine", ENGINE, "which database it is"),
        optional(
            "members",
            Shape::Named(&Shape::Map(&MEMBER)),
            "its nodes, each under a name of your choice; n1 is the first",
        ),
        optional(
            "kubernetes",
            Shape::Map(&KUBERNETES),
            "its nodes, where they are pods of a Kubernetes cluster (`target: kubernetes`): the program `kubectl` \
             reaches them",
        ),
        optional(
            "may-break",
            Shape::List { of: &Shape::Name, least: 1, most: None },
            "members that faults may strike; default none. `holdfast run` also needs `--yes-break NAME` with the \
             scenario's name",
        ),
        optional(
            "agents",
            Shape::Named(&Shape::Map(&AGENT)),
            "machines on which loads may stand, each under a name of your choice",
        ),
        optional(
            "agent-lost",
            Shape::Word(AGENT_LOST),
            "what happens to a load that has lost an agent: `unknown` (default), it ends and the run is unknown, or \
             `go-on`, its other agents go on",
        ),
        optional(
            "database",
            Shape::Text,
            "name of the database that loads use; default the one that servers of the engine's protocol usually have, \
             required if there is none",
        ),
        optional(
            "user",
            Shape::Text,
            "user that clients connect as; default the one that servers of the engine's protocol usually have. The \
             password is read from the environment variable PGPASSWORD",
        ),
        optional(
            "ssh-config",
            Shape::Text,
            "absolute path of a configuration file that ssh uses in place of yours",
        ),
    ],
    &["members", "kubernetes"],
);

/// Pods in place of members.
pub(crate) static KUBERNETES: Fields = Fields {
    what: "a cluster of pods",
    fields: &[
        optional("namespace", Shape::Name, "the pods' namespace; default `default`"),
        optional("context", Shape::Text, "the context of kubectl's configuration; default its current one"),
        optional(
            "kubeconfig",
            Shape::Text,
            "absolute path of kubectl's configuration; default where kubectl looks for it",
        ),
        optional(
            "stateful-set",
            Shape::Name,
            "name of the StatefulSet whose pods are the members: NAME-0, which is n1, NAME-1 ...",
        ),
        optional(
            "replicas",
            Shape::Count { least: 1, most: MOST_PODS },
            "the number of the StatefulSet's pods",
        ),
        optional(
            "pods",
            Shape::List { of: &Shape::Name, least: 1, most: None },
            "the pods that are the members, in order; n1 is the first",
        ),
        optional(
            "container",
            Shape::Name,
            "the container that the database runs in; default the pod's first",
        ),
        optional(
            "port",
            Shape::Count { least: 1, most: 65_535 },
            "the port that the database listens on in the pod; default the usual one of the engine's protocol",
        ),
        optional(
            "role",
            Shape::Map(&POD_ROLE),
            "the label of pods by which the cluster shows the leader; faults ask the database itself, and the run \
             warns where the two differ",
        ),
        optional(
            "agents",
            Shape::Map(&POD_AGENTS),
            "pods that are made for the run, on which loads may stand, called agent-0, agent-1 ...; where the members are \
             pods of a StatefulSet",
        ),
    ],
    exactly_one_of: &["stateful-set", "pods"],
    at_least_one_of: &[],
    pair: Some(("stateful-set", "replicas")),
};

/// A label by which a cluster shows who leads.
pub(crate) static POD_ROLE: Fields = plain(
    "a role of pods",
    &[
        required("label", Shape::Text, "the label's name, such as `role` or `cnpg.io/instanceRole`"),
        required(
            "leader",
            Shape::List { of: &Shape::Text, least: 1, most: None },
            "its values on the pod that leads",
        ),
    ],
);

/// Agents that are pods of the members' cluster.
pub(crate) static POD_AGENTS: Fields = plain(
    "agents as pods",
    &[
        required(
            "image",
            Shape::Text,
            "an image with holdfast in the same version, as the cluster's nodes name it",
        ),
        required("count", Shape::Count { least: 1, most: MOST_PODS }, "how many there are"),
        optional("program", Shape::Text, "holdfast in the image; default `holdfast`"),
    ],
);

/// A member of a cluster.
pub(crate) static MEMBER: Fields = plain(
    "a member",
    &[
        required(
            "endpoint",
            Shape::Text,
            "address and port that clients use (10.0.0.1:5432, db1.example.org:5432)",
        ),
        optional("reach", Shape::Map(&REACH), "how commands reach its machine; needed for faults"),
        optional(
            "facts",
            Shape::Settings(&Shape::Setting),
            "values for parameters of command files, such as the name of its unit or its address",
        ),
    ],
);

/// What becomes of a load that has lost an agent.
pub(crate) static AGENT_LOST: &[&str] = &["unknown", "go-on"];

/// A machine on which loads may stand.
pub(crate) static AGENT: Fields = plain(
    "an agent",
    &[
        required("reach", Shape::Map(&REACH), "how the machine is reached"),
        optional(
            "program",
            Shape::Text,
            "holdfast on that machine, in the same version; default `holdfast`, and on this machine the program that runs",
        ),
    ],
);

/// How commands reach a machine.
pub(crate) static REACH: Fields = choice(
    "a reach",
    &[
        optional(
            "ssh",
            Shape::Text,
            "the machine, as the program `ssh` takes it: a name of its configuration, or user@host",
        ),
        optional(
            "local",
            Shape::List { of: &Shape::Text, least: 0, most: None },
            "this machine: a program and its arguments that start a shell where the member runs ([nsenter, \
             --net=/run/netns/db1]), or `[]` for a plain shell",
        ),
    ],
    &["ssh", "local"],
);
