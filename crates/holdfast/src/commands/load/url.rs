//! A database's URL, as PostgreSQL's own tools take it: `postgres://user:password@host:port,host:port/database`.
//!
//! Owns reading it and finding its hosts' addresses. What it asks for and we cannot do is refused, never passed over.

use std::net::ToSocketAddrs;

use load::Endpoint;

/// PostgreSQL's own port.
const PORT: u16 = 5432;

/// A URL, taken apart.
#[derive(Debug, PartialEq, Eq)]
pub struct DatabaseUrl {
    pub hosts: Vec<(String, u16)>,
    pub name: String,
    pub user: String,
    pub password: Option<String>,
}

/// What is wrong with a URL.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    #[error(
        "the URL does not begin with postgres:// (a database such as postgres://user@localhost:5432/postgres)"
    )]
    Scheme,
    #[error(
        "the URL's {0} is not readable: a % is followed by two hexadecimal digits, and the whole is UTF-8"
    )]
    Escape(&'static str),
    #[error("the URL's host {0:?} has no readable port")]
    Port(String),
    #[error("the URL names no host; Unix sockets are not supported, write localhost")]
    NoHost,
    #[error(
        "the URL asks for {0}, which is not supported; only sslmode=disable, allow or prefer are, without encryption"
    )]
    Parameter(String),
    #[error("host {host}: {why}")]
    Unresolved { host: String, why: String },
}

/// Takes a URL apart.
pub fn parse(url: &str) -> Result<DatabaseUrl, UrlError> {
    let rest = url.strip_prefix("postgres://").or_else(|| url.strip_prefix("postgresql://"));
    let rest = rest.ok_or(UrlError::Scheme)?;
    let (rest, parameters) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, name) = rest.split_once('/').unwrap_or((rest, ""));
    let (login, hosts) = authority.rsplit_once('@').unwrap_or(("", authority));
    let (user, password) = match login.split_once(':') {
        Some((user, password)) => (user, Some(decoded(password, "password")?)),
        None => (login, None),
    };
    for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
        if !["sslmode=disable", "sslmode=allow", "sslmode=prefer"].contains(&parameter) {
            return Err(UrlError::Parameter(parameter.to_owned()));
        }
    }
    let user = match decoded(user, "user")? {
        none if none.is_empty() => "postgres".to_owned(),
        user => user,
    };
    let name = match decoded(name, "database")? {
        none if none.is_empty() => user.clone(),
        name => name,
    };
    let hosts: Result<Vec<(String, u16)>, UrlError> = hosts.split(',').map(host_and_port).collect();
    Ok(DatabaseUrl { hosts: hosts?, name, user, password })
}

fn host_and_port(written: &str) -> Result<(String, u16), UrlError> {
    let wrong = || UrlError::Port(written.to_owned());
    let (host, port) = match written.strip_prefix('[') {
        // An IPv6 address stands in brackets.
        Some(rest) => rest.split_once(']').ok_or_else(wrong)?,
        None => written.find(':').map_or((written, ""), |colon| written.split_at(colon)),
    };
    let port = match port.strip_prefix(':') {
        Some(digits) => digits.parse().map_err(|_| wrong())?,
        None if port.is_empty() => PORT,
        None => return Err(wrong()),
    };
    let host = decoded(host, "host")?;
    if host.is_empty() || host.starts_with('/') { Err(UrlError::NoHost) } else { Ok((host, port)) }
}

fn decoded(text: &str, what: &'static str) -> Result<String, UrlError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let (digits, after) = rest.split_at_checked(2).ok_or(UrlError::Escape(what))?;
        let digits = std::str::from_utf8(digits).map_err(|_| UrlError::Escape(what))?;
        let digits_only = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        let byte = u8::from_str_radix(digits, 16).ok().filter(|_| digits_only);
        bytes.push(byte.ok_or(UrlError::Escape(what))?);
        rest = after;
    }
    String::from_utf8(bytes).map_err(|_| UrlError::Escape(what))
}

/// The hosts' addresses, the first of each.
pub fn resolve(hosts: &[(String, u16)]) -> Result<Vec<Endpoint>, UrlError> {
    let endpoint = |(host, port): &(String, u16)| {
        let unresolved = |why: String| UrlError::Unresolved { host: host.clone(), why };
        let mut found =
            (host.as_str(), *port).to_socket_addrs().map_err(|error| unresolved(error.to_string()))?;
        let address = found.next().ok_or_else(|| unresolved("it has no address".to_owned()))?;
        Ok(Endpoint { node: format!("{host}:{port}"), address })
    };
    hosts.iter().map(endpoint).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `user:password@host:port.../database`, or what is wrong.
    fn told(url: &str) -> String {
        match parse(url) {
            Ok(DatabaseUrl { hosts, name, user, password }) => {
                let hosts: Vec<String> = hosts.iter().map(|(host, port)| format!("{host} {port}")).collect();
                format!("{user} {password:?} {} {name}", hosts.join(" "))
            }
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn urls_are_taken_apart_as_postgresqls_tools_take_them() {
        let check = |url: &str, expected: &str| assert_eq!(told(url), expected, "{url}");
        check("postgres://me:se%40cret@db:6000/shop", "me Some(\"se@cret\") db 6000 shop");
        check("postgresql://localhost", "postgres None localhost 5432 postgres");
        check("postgres://me@[::1]:7/x?sslmode=disable", "me None ::1 7 x");
        check("postgres://me@a,b:5433/x", "me None a 5432 b 5433 x");
    }

    #[test]
    fn what_cannot_be_done_is_refused() {
        let check = |url: &str, part: &str| {
            let told = told(url);
            assert!(told.contains(part), "{url}: {told}");
        };
        check("mysql://localhost/x", "does not begin with postgres://");
        check("postgres://a:b%4@localhost", "password is not readable");
        check("postgres://a:b%zz@localhost", "password is not readable");
        check("postgres://a:b%+1@localhost", "password is not readable");
        check("postgres://localhost:port/x", "no readable port");
        check("postgres://[::1/x", "no readable port");
        check("postgres://me@/x", "names no host");
        check("postgres://me@%2Frun/x", "names no host");
        check("postgres://me@h/x?sslmode=require", "sslmode=require");
    }
}
