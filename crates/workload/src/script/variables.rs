//! Variables of scripts: names are given places when the scripts are read, so that no transaction looks a name up.
//!
//! Owns names, places and what a client's variables hold; all scripts of a load share the names, because a client's
//! variables live from one transaction to the next, whichever script it is of.

use std::collections::BTreeMap;

use super::value::{EvaluationError, Value};

/// A variable as a script mentions it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Variable {
    place: usize,
    name: Box<str>,
}

impl Variable {
    /// Its place among all variables.
    pub(super) fn place(&self) -> usize {
        self.place
    }
}

/// The variable whose value seeds hash functions that are given no seed.
pub(super) const DEFAULT_SEED: &str = "default_seed";
const DEFAULT_SEED_PLACE: usize = 0;

/// Names that scripts mention, each at its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Names(BTreeMap<Box<str>, usize>);

impl Default for Names {
    fn default() -> Self {
        Names(BTreeMap::from([(DEFAULT_SEED.into(), DEFAULT_SEED_PLACE)]))
    }
}

impl Names {
    /// The variable of this name, which gets a place when it has none.
    pub(super) fn variable(&mut self, name: &str) -> Variable {
        let place = self.place(name).unwrap_or_else(|| {
            let next = self.0.len();
            self.0.insert(name.into(), next);
            next
        });
        Variable { place, name: name.into() }
    }

    fn place(&self, name: &str) -> Option<usize> {
        self.0.get(name).copied()
    }
}

/// What one client's variables hold.
#[derive(Debug, Clone, Default)]
pub(super) struct Variables(Vec<Option<Value>>);

impl Variables {
    /// What it holds.
    pub(super) fn get(&self, variable: &Variable) -> Result<&Value, EvaluationError> {
        let held = self.0.get(variable.place).and_then(Option::as_ref);
        held.ok_or_else(|| EvaluationError::Unset(variable.name.to_string()))
    }

    /// What hash functions are seeded with where a script gives no seed.
    pub(super) fn default_seed(&self) -> Option<&Value> {
        self.0.get(DEFAULT_SEED_PLACE).and_then(Option::as_ref)
    }

    pub(super) fn set(&mut self, variable: &Variable, value: Value) {
        self.set_at(variable.place, value);
    }

    /// Sets a variable by a name that is known only now. One that no script mentions is nobody's to read.
    pub(super) fn set_by_name(&mut self, names: &Names, name: &str, value: Value) {
        if let Some(place) = names.place(name) {
            self.set_at(place, value);
        }
    }

    fn set_at(&mut self, place: usize, value: Value) {
        if place >= self.0.len() {
            self.0.resize(place + 1, None);
        }
        if let Some(held) = self.0.get_mut(place) {
            *held = Some(value);
        }
    }
}
