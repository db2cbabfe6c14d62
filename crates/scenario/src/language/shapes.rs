//! Shapes that only scenarios have, beside those of every file that people write.

use capabilities::workloads;

use super::schema;
use crate::quantity;

pub(crate) use yaml::language::{
    Field, Fields, MOST_FREE_NAME_BYTES, MOST_NAME_BYTES, OwnShape, Shape, choice, no_keys, no_tables,
    optional, plain, required,
};

/// A place of the site, or where roles are allowed one of those.
pub(crate) const PLACE: Shape = Shape::Own(&PLACE_SHAPE);
static PLACE_SHAPE: OwnShape = OwnShape {
    holds: || "a place (dc1, dc1/a/r1/h2)".to_owned(),
    schema: schema::place,
    keys: no_keys,
    tables: no_tables,
};

/// A node of the database, by name or in a role.
pub(crate) const NODE: Shape = Shape::Own(&NODE_SHAPE);
pub(super) static NODE_SHAPE: OwnShape = OwnShape {
    holds: || "a node (n1), or a role: leader, a-follower, random".to_owned(),
    schema: schema::node,
    keys: no_keys,
    tables: no_tables,
};

/// `off`, `all` or `any N`.
pub(crate) const SYNCHRONOUS: Shape = Shape::Own(&SYNCHRONOUS_SHAPE);
pub(super) static SYNCHRONOUS_SHAPE: OwnShape = OwnShape {
    holds: || "off, all, or any N".to_owned(),
    schema: schema::synchronous,
    keys: no_keys,
    tables: no_tables,
};

/// A map with the keys of one of [`workloads::OPTIONS`], by the workload beside it.
pub(crate) const WORKLOAD_OPTIONS: Shape = Shape::Own(&WORKLOAD_OPTIONS_SHAPE);
static WORKLOAD_OPTIONS_SHAPE: OwnShape = OwnShape {
    holds: || "a map of the workload's own options".to_owned(),
    schema: schema::options,
    keys: no_keys,
    tables: || {
        workloads::OPTIONS.iter().map(|table| (table.fields, format!(" of {}", table.workload))).collect()
    },
};

/// `< 30s` and its like, one per quantity of [`crate::quantity::QUANTITIES`].
pub(crate) const EXPECTATIONS: Shape = Shape::Own(&EXPECTATIONS_SHAPE);
static EXPECTATIONS_SHAPE: OwnShape = OwnShape {
    holds: || HOLDS_EXPECTATIONS.to_owned(),
    schema: schema::expectations,
    keys: quantity::keys,
    tables: no_tables,
};
const HOLDS_EXPECTATIONS: &str = "quantities, each with a comparison. A scope may precede the name: \
    LOAD.PHASE.QUANTITY or LOAD.FAULT.QUANTITY. If a part is left out or is `*`, the expectation must hold for every load, \
    phase (except warm-up) and fault; errors are added up. PHASE `all` is all phases but warm-up taken together. FAULT is \
    the phase it strikes in, its kind, or fault-1, fault-2 ... in the order of the schedule";

/// A map of numbers by names of the user's choice, possibly empty.
pub(crate) const FIGURES: Shape = Shape::Own(&FIGURES_SHAPE);
static FIGURES_SHAPE: OwnShape =
    OwnShape { holds: crate::figures::in_words, schema: schema::figures, keys: no_keys, tables: no_tables };

/// A database by its name, or by its file.
pub(crate) const ENGINE: Shape = Shape::Own(&ENGINE_SHAPE);
pub(super) static ENGINE_SHAPE: OwnShape = OwnShape {
    holds: || {
        let names = capabilities::names().join(", ");
        format!(
            "one of {names}; or a path of an engine file within the scenario's folder (./my-database.yaml)"
        )
    },
    schema: schema::engine,
    keys: no_keys,
    tables: no_tables,
};

/// An engine file in full, as a run directory has it.
pub(crate) static ENGINE_IN_FULL: Fields = plain(
    "an engine",
    &[
        required("file", Shape::Text, "what the file was called"),
        required("text", Shape::Text, "the whole file"),
    ],
);

/// A map of axes: the path of a setting with a list of values, or a name with named sets of settings by path.
pub(crate) const AXES: Shape = Shape::Own(&AXES_SHAPE);
static AXES_SHAPE: OwnShape = OwnShape {
    holds: || {
        "a map: either the path of a setting and a list of values, or a name and several named sets of settings"
            .to_owned()
    },
    schema: schema::axes,
    keys: no_keys,
    tables: no_tables,
};

/// Most hosts of a site: as many as it has addresses.
pub(crate) const MOST_HOSTS: u64 = 60_000;
/// Most database nodes.
pub(crate) const MOST_NODES: u64 = 1_000;
/// Most pods of a cluster that exists: each has a process that forwards connections to it.
pub(crate) const MOST_PODS: u64 = 100;
