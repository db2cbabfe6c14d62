//! Who may be struck: the machines that somebody listed, once somebody confirmed it.
//!
//! A strike takes a permit, so that there is no way to one without both.

use std::collections::BTreeSet;

/// Leave to strike some machines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permit {
    hosts: BTreeSet<String>,
}

/// Why there is no leave.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PermitError {
    /// A machine is not on the list.
    #[error("{host} is not on the list of machines that may be broken ({allowed})")]
    NotAllowed {
        /// The machine.
        host: String,
        /// The list.
        allowed: String,
    },
    /// Nobody confirmed it, or something else.
    #[error(
        "nothing is broken without a confirmation: this breaks {hosts}; to confirm it, add `--yes-break {name}`"
    )]
    NotConfirmed {
        /// What must be given.
        name: String,
        /// The machines.
        hosts: String,
    },
}

impl Permit {
    /// Leave to strike `hosts`, all of which must be among `allowed`; `confirmed` must be `name`.
    ///
    /// # Errors
    /// When a machine is not listed, or nobody confirmed.
    pub fn ask(
        hosts: &BTreeSet<String>,
        allowed: &BTreeSet<String>,
        name: &str,
        confirmed: Option<&str>,
    ) -> Result<Permit, PermitError> {
        let listed =
            |hosts: &BTreeSet<String>| hosts.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        if let Some(host) = hosts.iter().find(|host| !allowed.contains(*host)) {
            let allowed = if allowed.is_empty() { "it is empty".to_owned() } else { listed(allowed) };
            return Err(PermitError::NotAllowed { host: host.clone(), allowed });
        }
        if confirmed != Some(name) {
            return Err(PermitError::NotConfirmed { name: name.to_owned(), hosts: listed(hosts) });
        }
        Ok(Permit { hosts: hosts.clone() })
    }

    /// Whether it is for this machine.
    #[must_use]
    pub fn covers(&self, host: &str) -> bool {
        self.hosts.contains(host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(hosts: &[&str]) -> BTreeSet<String> {
        hosts.iter().map(|host| (*host).to_owned()).collect()
    }

    #[test]
    fn a_machine_must_be_listed_and_the_name_confirmed() {
        let ask =
            |hosts: &[&str], confirmed| Permit::ask(&set(hosts), &set(&["db1", "db2"]), "shop", confirmed);
        assert!(
            matches!(ask(&["db1", "db3"], Some("shop")), Err(PermitError::NotAllowed { host, .. }) if host == "db3")
        );
        assert!(matches!(ask(&["db1"], None), Err(PermitError::NotConfirmed { .. })));
        assert!(matches!(ask(&["db1"], Some("yes")), Err(PermitError::NotConfirmed { .. })));
        let permit = ask(&["db1"], Some("shop")).expect("leave");
        assert!(permit.covers("db1") && !permit.covers("db2"));
    }
}
