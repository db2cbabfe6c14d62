//! What a role proves itself with, and that nobody gets to see it: it has no form for people, and none for debugging.

use std::collections::BTreeMap;
use std::fmt;

use crate::endpoint::Address;

/// A role's password: the same everywhere, or one for each server.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Password {
    everywhere: Option<String>,
    /// By the text of the address.
    at: BTreeMap<String, String>,
}

impl Password {
    /// A password for each of these servers.
    #[must_use]
    pub fn by_server(passwords: impl IntoIterator<Item = (Address, String)>) -> Self {
        let at = passwords.into_iter().map(|(address, password)| (address.to_string(), password));
        Self { everywhere: None, at: at.collect() }
    }

    /// The password for the server of this address.
    pub(crate) fn at(&self, peer: &str) -> Option<&str> {
        self.at.get(peer).or(self.everywhere.as_ref()).map(String::as_str)
    }
}

impl From<String> for Password {
    fn from(password: String) -> Self {
        Self { everywhere: Some(password), at: BTreeMap::new() }
    }
}

impl From<&str> for Password {
    fn from(password: &str) -> Self {
        password.to_owned().into()
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_server_is_shown_its_own_password_and_nobody_else_any() {
        let address = |port| Address::from(std::net::SocketAddr::from(([127, 0, 0, 1], port)));
        let password = Password::by_server([(address(1), "one".to_owned()), (address(2), "two".to_owned())]);
        assert_eq!(password.at("127.0.0.1:2"), Some("two"));
        assert_eq!(password.at("127.0.0.1:3"), None);
        assert_eq!(Password::from("same").at("127.0.0.1:3"), Some("same"));
        assert_eq!(format!("{password:?} {:?}", Password::from("same")), "Password(hidden) Password(hidden)");
    }
}
