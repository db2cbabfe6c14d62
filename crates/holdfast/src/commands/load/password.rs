//! Where a password comes from: the URL, a file named on the command line, `PGPASSWORD`, or a `.pgpass`, in that order.
//!
//! Owns reading the files; what is read goes to the servers it is for and is shown to nobody. Sources: PostgreSQL's manual,
//! "The Password File" and "Environment Variables"; `passwordFromFile` of libpq's fe-connect.c for what the manual leaves
//! open.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use history::whole_file::{self, Link, WholeFileError};
use load::{Endpoint, Password};

use super::url::{DatabaseUrl, Host};

/// The longest file of passwords.
const LONGEST_FILE_BYTES: u64 = 1 << 20;

/// Bits of a mode that let others than the owner at a file.
const OTHERS: u32 = 0o077;

/// Folders of sockets that a `.pgpass` calls `localhost`: the ones that PostgreSQL is built with, here and there.
const USUAL_SOCKET_FOLDERS: [&str; 3] = ["/tmp", "/run/postgresql", "/var/run/postgresql"];

/// What the environment says of passwords.
#[derive(Default)]
pub struct Environment {
    /// `PGPASSWORD`.
    pub password: Option<String>,
    /// `PGPASSFILE`, or else `~/.pgpass`.
    pub file: Option<PathBuf>,
}

impl Environment {
    /// That of this process. What is empty counts as not given, as for libpq.
    pub fn of_this_process() -> Environment {
        let given = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let at_home = || std::env::home_dir().map(|home| home.join(".pgpass"));
        Environment {
            password: given("PGPASSWORD").and_then(|password| password.into_string().ok()),
            file: given("PGPASSFILE").map(PathBuf::from).or_else(at_home),
        }
    }
}

/// Why a password that was asked for cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum PasswordError {
    #[error("--url holds a password and --password-file names another; leave one out")]
    Twice,
    #[error("--password-file {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: WholeFileError },
    #[error("--password-file {}: other users can read it; run chmod 600 on it", path.display())]
    Open { path: PathBuf },
    #[error("--password-file {}: its first line is empty", path.display())]
    Empty { path: PathBuf },
}

/// The password, and what its user should know, in sentences.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Found {
    pub password: Option<Password>,
    pub warnings: Vec<String>,
}

/// Looks for the password of a database's servers; `endpoints` are its hosts, in their order.
pub fn find(
    database: &DatabaseUrl,
    endpoints: &[Endpoint],
    file: Option<&Path>,
    environment: Environment,
) -> Result<Found, PasswordError> {
    let warned = |what: &str| vec![what.to_owned()];
    match (&database.password, file) {
        (Some(_), Some(_)) => return Err(PasswordError::Twice),
        (Some(password), None) => {
            let warnings = warned(
                "every user of this machine can see the password in --url with ps; use PGPASSWORD, ~/.pgpass or \
                 --password-file instead",
            );
            return Ok(Found { password: Some(password.clone()), warnings });
        }
        (None, Some(path)) => return Ok(Found { password: Some(of_file(path)?), warnings: Vec::new() }),
        (None, None) => {}
    }
    if let Some(password) = environment.password {
        return Ok(Found { password: Some(password.into()), warnings: Vec::new() });
    }
    let Some(path) = environment.file else { return Ok(Found::default()) };
    let passed_over = |why: &str| {
        Ok(Found { password: None, warnings: warned(&format!("{} is ignored: {why}", path.display())) })
    };
    let lines = match private(&path) {
        Ok(Some(lines)) => lines,
        Ok(None) => return passed_over("other users can read it; run chmod 600 on it"),
        Err(error) if error.is_absence() => return Ok(Found::default()),
        Err(error) => return passed_over(&error.to_string()),
    };
    let found = database.hosts.iter().zip(endpoints).filter_map(|(host, endpoint)| {
        let password = lines.lines().find_map(|line| of_line(line, host, &database.name, &database.user))?;
        Some((endpoint.address.clone(), password))
    });
    let found: Vec<_> = found.collect();
    let password = (!found.is_empty()).then(|| Password::by_server(found));
    Ok(Found { password, warnings: Vec::new() })
}

/// The first line of a file.
fn of_file(path: &Path) -> Result<Password, PasswordError> {
    let path = path.to_owned();
    let text = match private(&path) {
        Ok(Some(text)) => text,
        Ok(None) => return Err(PasswordError::Open { path }),
        Err(source) => return Err(PasswordError::Unreadable { path, source }),
    };
    match text.lines().next() {
        Some(password) if !password.is_empty() => Ok(password.into()),
        _ => Err(PasswordError::Empty { path }),
    }
}

/// A file's text; none when others than its owner may read it.
fn private(path: &Path) -> Result<Option<String>, WholeFileError> {
    let file = whole_file::open(path, Link::Followed)?;
    if file.metadata()?.permissions().mode() & OTHERS != 0 {
        return Ok(None);
    }
    whole_file::read_text(path, Link::Followed, LONGEST_FILE_BYTES).map(Some)
}

/// The password of a line, when the line is for this host, database and user.
fn of_line(line: &str, host: &Host, database: &str, user: &str) -> Option<String> {
    if line.starts_with('#') {
        return None;
    }
    let (names, port) = match host {
        Host::Name(name, port) => (vec![name.as_str()], port),
        Host::Folder(folder, port) => {
            let folder = folder.to_str()?;
            let usual = USUAL_SOCKET_FOLDERS.contains(&folder).then_some("localhost");
            (usual.into_iter().chain([folder]).collect(), port)
        }
    };
    let mut rest = line;
    let mut is_one_of = |wanted: &[&str]| {
        let (field, after) = field(rest)?;
        rest = after;
        (field.as_deref().is_none_or(|field| wanted.contains(&field))).then_some(())
    };
    is_one_of(&names)?;
    is_one_of(&[&port.to_string()])?;
    is_one_of(&[database])?;
    is_one_of(&[user])?;
    let password = unescaped(rest);
    (!password.is_empty()).then_some(password)
}

/// The field at the front, none for the wildcard, and what follows its colon.
fn field(line: &str) -> Option<(Option<String>, &str)> {
    let mut escaped = false;
    let end = line.find(|c| match (escaped, c) {
        (true, _) => {
            escaped = false;
            false
        }
        (false, '\\') => {
            escaped = true;
            false
        }
        (false, c) => c == ':',
    })?;
    let (written, rest) = line.split_at(end);
    let rest = rest.strip_prefix(':')?;
    Some(((written != "*").then(|| unescaped(written)), rest))
}

/// A backslash stands before what is meant as it is.
fn unescaped(written: &str) -> String {
    let mut text = String::with_capacity(written.len());
    let mut characters = written.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => text.extend(characters.next()),
            character => text.push(character),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};

    use super::super::url;
    use super::*;

    /// The password that a line gives for `db:5432`, database `shop`, user `me`.
    fn given(line: &str) -> Option<String> {
        of_line(line, &Host::Name("db".to_owned(), 5432), "shop", "me")
    }

    #[test]
    fn a_line_of_pgpass_is_read_as_libpq_reads_it() {
        let check =
            |line: &str, expected: Option<&str>| assert_eq!(given(line).as_deref(), expected, "{line}");
        check("db:5432:shop:me:secret", Some("secret"));
        check("*:*:*:*:secret", Some("secret"));
        check("*:5432:shop:*:se:cret", Some("se:cret"));
        check("db:5432:shop:me:a\\:b\\\\c", Some("a:b\\c"));
        check("d\\b:5432:shop:me:secret", Some("secret"));
        check("db:5432:shop:me: spaced ", Some(" spaced "));
        check("db:5433:shop:me:secret", None);
        check("d*:5432:shop:me:secret", None);
        check("\\*:5432:shop:me:secret", None);
        check("#db:5432:shop:me:secret", None);
        check("db:5432:shop:me:", None);
        check("db:5432:shop:me", None);
        check("", None);
        let socket =
            |folder: &str, line: &str| of_line(line, &Host::Folder(folder.into(), 5432), "shop", "me");
        assert_eq!(socket("/var/run/postgresql", "localhost:*:*:*:secret").as_deref(), Some("secret"));
        assert_eq!(socket("/srv/pg", "localhost:*:*:*:secret"), None);
        assert_eq!(socket("/srv/pg", "/srv/pg:*:*:*:secret").as_deref(), Some("secret"));
    }

    /// What is found, as `password; warnings`, with a file of this mode in each place.
    struct Places {
        folder: tempfile::TempDir,
    }

    impl Places {
        fn put(&self, name: &str, mode: u32, text: &str) -> PathBuf {
            let path = self.folder.path().join(name);
            fs::write(&path, text).expect("written");
            fs::set_permissions(&path, Permissions::from_mode(mode)).expect("set");
            path
        }
    }

    fn found(url: &str, file: Option<&Path>, environment: Environment) -> Result<Found, String> {
        let database = url::parse(url).expect("a URL");
        let endpoints = url::resolve(&database.hosts).expect("addresses");
        find(&database, &endpoints, file, environment).map_err(|error| error.to_string())
    }

    #[test]
    fn the_command_line_comes_before_the_environment_and_that_before_pgpass() {
        let places = Places { folder: tempfile::tempdir().expect("a folder") };
        let pgpass = places.put("pgpass", 0o600, "# mine\n127.0.0.1:1:*:*:of-one\n*:*:*:*:of-others\n");
        let file = places.put("password", 0o400, "of-file\nmore\n");
        let environment = |password: Option<&str>| Environment {
            password: password.map(str::to_owned),
            file: Some(pgpass.clone()),
        };
        let plain = "postgres://me@127.0.0.1:1,127.0.0.1:2/x";
        let both = found("postgres://me:of-url@127.0.0.1/x", Some(&file), environment(None));
        assert!(both.expect_err("two").contains("leave one out"));
        let of_url =
            found("postgres://me:of-url@127.0.0.1/x", None, environment(Some("of-env"))).expect("found");
        assert_eq!(of_url.password, Some("of-url".into()));
        assert!(of_url.warnings[0].contains("--password-file") && !of_url.warnings[0].contains("of-url"));
        let check = |file: Option<&Path>, of_environment: Option<&str>, expected: Password| {
            let found = found(plain, file, environment(of_environment)).expect("found");
            assert_eq!(found, Found { password: Some(expected), warnings: Vec::new() });
        };
        check(Some(&file), Some("of-env"), "of-file".into());
        check(None, Some("of-env"), "of-env".into());
        let address = |port| load::Address::Tcp {
            address: std::net::SocketAddr::from(([127, 0, 0, 1], port)),
            host: Some("127.0.0.1".to_owned()),
        };
        let each = [(address(1), "of-one".to_owned()), (address(2), "of-others".to_owned())];
        check(None, None, Password::by_server(each));
    }

    #[test]
    fn files_that_others_may_read_are_not_used() {
        let places = Places { folder: tempfile::tempdir().expect("a folder") };
        let open = places.put("open", 0o640, "*:*:*:*:secret\n");
        let url = "postgres://me@127.0.0.1/x";
        let environment = |file: &Path| Environment { password: None, file: Some(file.to_owned()) };
        let passed_over = found(url, None, environment(&open)).expect("none");
        assert_eq!(passed_over.password, None);
        assert!(passed_over.warnings[0].ends_with("other users can read it; run chmod 600 on it"));
        let refused = |file: &Path| found(url, Some(file), Environment::default()).expect_err("refused");
        assert!(refused(&open).contains("chmod 600"));
        assert!(refused(&places.put("empty", 0o600, "\n")).contains("empty"));
        assert!(refused(&places.folder.path().join("none")).contains("No such file"));
        assert!(refused(Path::new("/dev/zero")).contains("a device"));
        let absent = found(url, None, environment(&places.folder.path().join("none"))).expect("none");
        assert_eq!(absent, Found::default());
    }
}
