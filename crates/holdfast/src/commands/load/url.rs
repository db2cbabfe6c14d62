//! A database's URL, as PostgreSQL's own tools take it: `postgres://user:password@host:port,host:port/database`, behind it
//! `?sslmode=verify-full&sslrootcert=ca.pem`, and `postgres:///database?host=/run/postgresql` for a Unix socket; and
//! `mysql://user@host/database` and `cql://user@host/keyspace` in the same form.
//!
//! Owns reading it, and finding its hosts' addresses and its authorities' certificates. What it asks for and we cannot do
//! is refused, never passed over. Source: PostgreSQL's manual, "Connection URIs" and "Parameter Key Words".

use std::net::ToSocketAddrs;
use std::path::{Path, PathBuf};

use load::{Address, Encryption, Endpoint, Password, Protocol, Trust};

/// What `sslmode` may say.
const SSL_MODES: &str = "disable, prefer, require, verify-ca or verify-full";

/// A URL, taken apart.
#[derive(Debug, PartialEq, Eq)]
pub struct DatabaseUrl {
    /// What its servers speak.
    pub protocol: Protocol,
    pub hosts: Vec<Host>,
    pub name: String,
    pub user: String,
    pub password: Option<Password>,
    pub ssl: Ssl,
}

/// Where a server is, as written.
#[derive(Debug, PartialEq, Eq)]
pub enum Host {
    Name(String, u16),
    /// The folder of a Unix socket.
    Folder(PathBuf, u16),
}

/// What is asked for of encryption.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Ssl {
    mode: SslMode,
    root_certificate: Option<PathBuf>,
}

/// libpq's words.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum SslMode {
    Disable,
    #[default]
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

/// What is wrong with a URL.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    #[error(
        "the URL does not begin with postgres://, mysql:// or cql:// (a database such as postgres://user@localhost:5432/postgres)"
    )]
    Scheme,
    #[error(
        "the URL's {0} is not readable: a % must be followed by two hexadecimal digits, and the result must be UTF-8"
    )]
    Escape(&'static str),
    #[error(
        "a host of the URL has no readable port; user and password come before an @; in a password write / ? # and @ \
         as %2F %3F %23 and %40"
    )]
    Port,
    #[error("an @ follows the hosts of the URL; in a password write / ? # and @ as %2F %3F %23 and %40")]
    Unescaped,
    #[error("a parameter of the URL has no value; write name=value behind the ?")]
    Incomplete,
    #[error("the URL names no host; write localhost, or ?host=/run/postgresql for a Unix socket")]
    NoHost,
    #[error(
        "the URL asks for {0:?}, which is not supported; host, port, dbname, user, password, sslmode and sslrootcert are"
    )]
    Parameter(String),
    #[error("the URL's sslmode {0:?} is not one of {SSL_MODES}")]
    SslMode(String),
    #[error(
        "sslmode={0} needs the authorities' certificates: add sslrootcert=FILE, or put them at ~/.postgresql/root.crt"
    )]
    NoAuthorities(&'static str),
    #[error("sslrootcert {path}: {why}")]
    Authorities { path: String, why: String },
    #[error("the URL names no database; write mysql://user@host/database, or cql://user@host/keyspace")]
    NoDatabase,
    #[error(
        "sessions of MySQL's protocol are not encrypted here; leave sslmode out, or write sslmode=disable"
    )]
    NotEncrypted,
    #[error("a server of this protocol is spoken to over TCP; write a host and not the folder of a socket")]
    NoSockets,
    #[error("host {host}: {why}")]
    Unresolved { host: String, why: String },
}

/// Takes a URL apart.
pub fn parse(url: &str) -> Result<DatabaseUrl, UrlError> {
    let (scheme, rest) = url.split_once("://").ok_or(UrlError::Scheme)?;
    let protocol = Protocol::of_scheme(scheme).ok_or(UrlError::Scheme)?;
    let usual = protocol.usual().ok_or(UrlError::Scheme)?;
    let follows_libpq = protocol.follows_libpq();
    // Where one of these stands in a password as it is, the rest of it would be taken for a name and told to everybody.
    let begin = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    if rest.get(begin..).is_some_and(|behind| behind.contains('@')) {
        return Err(UrlError::Unescaped);
    }
    let (rest, parameters) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, name) = rest.split_once('/').unwrap_or((rest, ""));
    let (login, hosts) = authority.rsplit_once('@').unwrap_or(("", authority));
    let (user, password) = match login.split_once(':') {
        Some((user, password)) => (user, Some(decoded(password, "password")?.into())),
        None => (login, None),
    };
    let mut given = Parameters::of(parameters)?;
    let or_given =
        |written: String, given: Option<String>| if written.is_empty() { given } else { Some(written) };
    let user = or_given(decoded(user, "user")?, given.take("user")).unwrap_or_else(|| usual.user.to_owned());
    let name = or_given(decoded(name, "database")?, given.take("dbname"));
    let name = match name {
        Some(name) => name,
        None if follows_libpq => user.clone(),
        None => return Err(UrlError::NoDatabase),
    };
    let password = password.or_else(|| given.take("password").map(Password::from));
    let port = match given.take("port") {
        Some(port) => port.parse().map_err(|_| UrlError::Port)?,
        None => usual.port,
    };
    let hosts: Result<Vec<Host>, UrlError> = match (hosts.trim_matches(','), given.take("host")) {
        ("", Some(hosts)) => hosts.split(',').map(|host| place(host, port)).collect(),
        ("", None) => Err(UrlError::NoHost),
        (_, _) => hosts.split(',').map(|host| host_and_port(host, port)).collect(),
    };
    let usual_mode = if follows_libpq { SslMode::default() } else { SslMode::Disable };
    let ssl = Ssl {
        mode: given.take("sslmode").map_or(Ok(usual_mode), |mode| ssl_mode(&mode))?,
        root_certificate: given.take("sslrootcert").map(PathBuf::from),
    };
    if let Some((unknown, _)) = given.0.into_iter().next() {
        return Err(UrlError::Parameter(unknown));
    }
    let url = DatabaseUrl { protocol, hosts: hosts?, name, user, password, ssl };
    if !follows_libpq {
        refuse_what_only_libpq_has(&url)?;
    }
    Ok(url)
}

/// Our sessions of the other protocols know TCP alone, and no encryption.
fn refuse_what_only_libpq_has(url: &DatabaseUrl) -> Result<(), UrlError> {
    if url.ssl.mode != SslMode::Disable || url.ssl.root_certificate.is_some() {
        return Err(UrlError::NotEncrypted);
    }
    match url.hosts.iter().any(|host| matches!(host, Host::Folder(..))) {
        true => Err(UrlError::NoSockets),
        false => Ok(()),
    }
}

/// What stands behind the question mark; the last of a name counts.
struct Parameters(Vec<(String, String)>);

impl Parameters {
    fn of(written: &str) -> Result<Self, UrlError> {
        let each = |parameter: &str| {
            let (name, value) = parameter.split_once('=').ok_or(UrlError::Incomplete)?;
            Ok((decoded(name, "parameter")?, decoded(value, "parameter")?))
        };
        let parameters: Result<_, UrlError> =
            written.split('&').filter(|parameter| !parameter.is_empty()).map(each).collect();
        parameters.map(Self)
    }

    fn take(&mut self, name: &str) -> Option<String> {
        let last = self.0.iter().rposition(|(known, _)| known == name);
        let value = last.map(|place| self.0.swap_remove(place).1);
        self.0.retain(|(known, _)| known != name);
        value
    }
}

fn ssl_mode(word: &str) -> Result<SslMode, UrlError> {
    match word {
        "disable" => Ok(SslMode::Disable),
        "prefer" => Ok(SslMode::Prefer),
        "require" => Ok(SslMode::Require),
        "verify-ca" => Ok(SslMode::VerifyCa),
        "verify-full" => Ok(SslMode::VerifyFull),
        other => Err(UrlError::SslMode(other.to_owned())),
    }
}

impl Ssl {
    /// Reads the authorities' certificates, where they are asked for.
    pub fn encryption(&self, home: Option<&Path>) -> Result<Encryption, UrlError> {
        let usual = || home.map(|home| home.join(".postgresql/root.crt")).filter(|path| path.exists());
        let path = self.root_certificate.clone().or_else(usual);
        let (trust, word) = match self.mode {
            SslMode::Disable => return Ok(Encryption::Never),
            SslMode::Prefer => return Ok(Encryption::Preferred),
            // As libpq: authorities that are there are held to.
            SslMode::Require if path.is_none() => (Trust::Anyone, "require"),
            SslMode::Require => (Trust::Authority, "require"),
            SslMode::VerifyCa => (Trust::Authority, "verify-ca"),
            SslMode::VerifyFull => (Trust::AuthorityAndName, "verify-full"),
        };
        let Some(path) = path else {
            return match trust {
                Trust::Anyone => Ok(Encryption::Required { trust, authorities: Vec::new() }),
                _ => Err(UrlError::NoAuthorities(word)),
            };
        };
        let unreadable = |why: String| UrlError::Authorities { path: path.display().to_string(), why };
        let authorities = std::fs::read(&path).map_err(|error| unreadable(error.to_string()))?;
        let encryption = Encryption::Required { trust, authorities };
        encryption.check().map_err(|error| unreadable(error.to_string()))?;
        Ok(encryption)
    }
}

/// A host as the parameter `host` names it.
fn place(host: &str, port: u16) -> Result<Host, UrlError> {
    match host {
        "" => Err(UrlError::NoHost),
        folder if folder.starts_with('/') => Ok(Host::Folder(folder.into(), port)),
        name => Ok(Host::Name(name.to_owned(), port)),
    }
}

fn host_and_port(written: &str, usual_port: u16) -> Result<Host, UrlError> {
    let wrong = || UrlError::Port;
    let (host, port) = match written.strip_prefix('[') {
        // An IPv6 address stands in brackets.
        Some(rest) => rest.split_once(']').ok_or_else(wrong)?,
        None => written.find(':').map_or((written, ""), |colon| written.split_at(colon)),
    };
    let port = match port.strip_prefix(':') {
        Some(digits) => digits.parse().map_err(|_| wrong())?,
        None if port.is_empty() => usual_port,
        None => return Err(wrong()),
    };
    let host = decoded(host, "host")?;
    place(&host, port)
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
pub fn resolve(hosts: &[Host]) -> Result<Vec<Endpoint>, UrlError> {
    hosts.iter().map(endpoint).collect()
}

fn endpoint(host: &Host) -> Result<Endpoint, UrlError> {
    match host {
        Host::Folder(folder, port) => {
            let socket = folder.join(format!(".s.PGSQL.{port}"));
            Ok(Endpoint { node: socket.display().to_string(), address: Address::Unix(socket) })
        }
        Host::Name(host, port) => {
            let unresolved = |why: String| UrlError::Unresolved { host: host.clone(), why };
            let mut found =
                (host.as_str(), *port).to_socket_addrs().map_err(|error| unresolved(error.to_string()))?;
            let address = found.next().ok_or_else(|| unresolved("it has no address".to_owned()))?;
            let address = Address::Tcp { address, host: Some(host.clone()) };
            Ok(Endpoint { node: format!("{host}:{port}"), address })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `user:password@host:port.../database`, or what is wrong.
    fn told(url: &str) -> String {
        match parse(url) {
            Ok(DatabaseUrl { protocol: _, hosts, name, user, password, ssl }) => {
                let host = |host: &Host| match host {
                    Host::Name(host, port) => format!("{host} {port}"),
                    Host::Folder(folder, port) => format!("{} {port}", folder.display()),
                };
                let hosts: Vec<String> = hosts.iter().map(host).collect();
                let ssl = if ssl == Ssl::default() { String::new() } else { format!(" {ssl:?}") };
                let password = if password.is_some() { "with" } else { "without" };
                format!("{user} {password} {} {name}{ssl}", hosts.join(" "))
            }
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn urls_are_taken_apart_as_postgresqls_tools_take_them() {
        let check = |url: &str, expected: &str| assert_eq!(told(url), expected, "{url}");
        check("postgres://me:se%40cret@db:6000/shop", "me with db 6000 shop");
        check("postgresql://localhost", "postgres without localhost 5432 postgres");
        check(
            "postgres://me@[::1]:7/x?sslmode=disable",
            "me without ::1 7 x Ssl { mode: Disable, root_certificate: None }",
        );
        check("postgres://me@a,b:5433/x", "me without a 5432 b 5433 x");
        check("postgres://me@%2Frun/x", "me without /run 5432 x");
        check("postgres:///x?host=/run/pg&port=6000&user=me&password=a%26b", "me with /run/pg 6000 x");
        check("postgres://me@/?host=a,/b&dbname=x", "me without a 5432 /b 5432 x");
        check(
            "postgres://me@h/x?sslmode=verify-full&sslrootcert=%2Fca.pem",
            "me without h 5432 x Ssl { mode: VerifyFull, root_certificate: Some(\"/ca.pem\") }",
        );
    }

    #[test]
    fn urls_of_other_protocols_have_their_own_port_and_user_and_no_encryption() {
        let told = |url: &str| {
            let url = parse(url).expect("a URL");
            (url.protocol, format!("{} {:?} {} {:?}", url.user, url.hosts, url.name, url.ssl.mode))
        };
        assert_eq!(
            told("mysql://db/shop"),
            (Protocol::Mysql, "root [Name(\"db\", 3306)] shop Disable".to_owned())
        );
        assert_eq!(
            told("mariadb://me:secret@[::1]:7/x?sslmode=disable"),
            (Protocol::Mysql, "me [Name(\"::1\", 7)] x Disable".to_owned())
        );
        assert_eq!(told("postgresql://db/shop").0, Protocol::Postgres);
        assert_eq!(
            told("cql://db/shop"),
            (Protocol::Cql, "cassandra [Name(\"db\", 9042)] shop Disable".to_owned())
        );
    }

    #[test]
    fn what_cannot_be_done_is_refused() {
        let check = |url: &str, part: &str| {
            let told = told(url);
            assert!(told.contains(part), "{url}: {told}");
        };
        check("http://localhost/x", "does not begin with postgres://, mysql:// or cql://");
        check("localhost/x", "does not begin with postgres://, mysql:// or cql://");
        check("mysql://me@h", "names no database");
        check("mysql://me@h/x?sslmode=require", "not encrypted here");
        check("mysql://me@h/x?sslrootcert=ca.pem", "not encrypted here");
        check("mysql:///x?host=/run/mysqld", "over TCP");
        check("postgres://a:b%4@localhost", "password is not readable");
        check("postgres://a:b%zz@localhost", "password is not readable");
        check("postgres://a:b%+1@localhost", "password is not readable");
        check("postgres://localhost:port/x", "no readable port");
        check("postgres://[::1/x", "no readable port");
        check("postgres://me@/x", "names no host");
        check("postgres://me@h/x?sslmode=allow", "\"allow\" is not one of disable, prefer");
        check("postgres://me@h/x?sslcrl=there", "\"sslcrl\", which is not supported");
        check("postgres://me@h/x?sslmode", "a parameter of the URL has no value");
        // A password that is not escaped, or a host forgotten: nothing of it is told.
        for url in
            ["u:se/cret@h/x", "u:se?cret@h/x", "u:se?c=ret@h/x", "u:se#cret@h/x", "u:secret", "u:se/cret"]
        {
            let told = told(&format!("postgres://{url}"));
            assert!(!told.contains("cret") && !told.contains("ret@"), "{url}: {told}");
        }
        check("postgres:///x?host=h&port=many", "no readable port");
    }

    #[test]
    fn authorities_are_asked_for_where_a_certificate_is_to_be_verified() {
        let home = tempfile::tempdir().expect("a folder");
        let check = |url: &str, expected: &str| {
            let url =
                format!("postgres://me@h/x?{}", url.replace("HOME", &home.path().display().to_string()));
            let told = match parse(&url).expect("a URL").ssl.encryption(Some(home.path())) {
                Ok(Encryption::Required { trust, .. }) => format!("{trust:?}"),
                Ok(encryption) => format!("{encryption:?}"),
                Err(error) => error.to_string().replace(&home.path().display().to_string(), "HOME"),
            };
            assert!(told.contains(expected), "{url}: {told}");
        };
        check("", "Preferred");
        check("sslmode=disable", "Never");
        check("sslmode=require", "Anyone");
        check("sslmode=verify-ca", "add sslrootcert=FILE");
        check("sslmode=verify-full&sslrootcert=HOME/none", "HOME/none: No such file");
        std::fs::write(home.path().join("empty"), "nothing").expect("written");
        check("sslmode=verify-full&sslrootcert=HOME/empty", "no certificate among");
        let certificate =
            rcgen::generate_simple_self_signed(["h".to_owned()]).expect("a certificate").cert.pem();
        std::fs::create_dir(home.path().join(".postgresql")).expect("a folder");
        std::fs::write(home.path().join(".postgresql/root.crt"), certificate).expect("written");
        check("sslmode=verify-full", "AuthorityAndName");
        check("sslmode=verify-ca", "Authority");
        check("sslmode=require", "Authority");
    }
}
