//! How clients speak to the database, and the program that does it for them where Holdfast knows no protocol of its own.
//!
//! Owns reading this part of the file.

use super::super::language::client::{
    CLIENT as CLIENT_TABLE, DBAPI, DIALECTS, DRIVER_FILES, JDBC, KEYS, MONGO, PROGRAMS, SPEAKS, SQL,
    STANDARD, TAKES_WRITES,
};
use super::super::{ClientProgram, DriverFiles, PinnedWheel, Speaker, Speaks, SqlDialect};
use super::*;

/// Keys that belong to a client program.
const OF_A_PROGRAM: &[&str] = &[
    "program",
    "speaks",
    "dialect",
    "driver",
    "install",
    "class-path",
    "url",
    "options",
    "takes-writes",
    "prepare",
];
/// Those of them that are about SQL.
const OF_SQL: &[&str] = &["dialect", "takes-writes", "prepare"];

pub(super) struct ClientPart {
    pub(super) protocol: Protocol,
    pub(super) user: String,
    pub(super) database: String,
    pub(super) program: Option<ClientProgram>,
}

impl ClientPart {
    /// Which workloads can be asked this way.
    pub(super) fn understands(&self) -> Understands {
        match self.program.as_ref().map(|program| program.speaks) {
            Some(Speaks::Keys) => Understands::of_keys(),
            Some(Speaks::Sql(SqlDialect::Standard)) => Understands::of_the_standard(),
            Some(Speaks::Sql(SqlDialect::Postgres | SqlDialect::Mysql)) | None => self.protocol.understands(),
        }
    }
}

impl Reader<'_> {
    pub(super) fn client(&mut self, node: &Node) -> Option<ClientPart> {
        let record = self.decoder.record(node, &CLIENT_TABLE)?;
        let protocol = record.get("protocol").and_then(|node| self.decoder.word(node, "protocol", PROTOCOLS));
        let user = record.get("user").and_then(|node| self.decoder.text(node, "the user"));
        let database = record.get("database").and_then(|node| self.decoder.text(node, "the database"));
        let called = protocol?.value;
        let protocol = Protocol::named(called)?;
        let is_sql = matches!(protocol, Protocol::Postgres | Protocol::PostgresCompatible | Protocol::Mysql);
        for (key, is_there, example) in
            [("user", user.is_some(), "me"), ("database", database.is_some(), "mine")]
        {
            if is_sql && !is_there {
                self.needs(node, &format!("the protocol {called}"), key, example);
            }
        }
        let program = match protocol {
            Protocol::Process => Some(self.client_program(&record, node)?),
            _ => self.without_program(&record, called).then_some(None)?,
        };
        Some(ClientPart {
            protocol,
            user: user.map(|user| user.value).unwrap_or_default(),
            database: match (database, protocol) {
                (Some(database), _) => database.value,
                // A keyspace is the clients' own to make.
                (None, Protocol::Cql) => "holdfast".to_owned(),
                (None, _) => String::new(),
            },
            program,
        })
    }

    fn needs(&mut self, node: &Node, who: &str, key: &str, example: &str) {
        let message = format!("{who} needs `{key}`");
        let label = format!("`{key}` is missing here");
        self.decoder.findings.add(
            "missing-key",
            node.head,
            message,
            label,
            format!("add `{key}: {example}`"),
        );
    }

    /// Whether nothing of a client program stands beside a protocol of ours.
    fn without_program(&mut self, record: &Record<'_>, called: &str) -> bool {
        let found = OF_A_PROGRAM.iter().find_map(|key| Some((key, record.key_at(key)?)));
        if let Some((key, at)) = found {
            let message = format!("`{key}` has no effect with the protocol {called}");
            let help = "remove it, or write `protocol: process`, by which a program speaks for the clients";
            self.decoder.findings.add("unused-key", at, message, "does nothing here", help);
        }
        found.is_none()
    }

    fn client_program(&mut self, record: &Record<'_>, node: &Node) -> Option<ClientProgram> {
        let speaker = record.get("program").map(|node| self.speaker(node, record));
        if speaker.is_none() {
            self.needs(node, "the protocol process", "program", DBAPI);
        }
        let speaks = self.speaks(record, node, speaker.as_ref().and_then(Option::as_ref));
        let driver = record.get("driver").and_then(|node| self.decoder.text(node, "the driver"));
        let files = match record.get("install") {
            Some(node) => self.driver_files(node)?,
            None => DriverFiles::OfTheMachine,
        };
        let url = record.get("url").map(|node| self.template(node, "the URL", Context::Node, false));
        let options = self.values(record, "options", Context::Node);
        let takes_writes = match record.get("takes-writes") {
            Some(node) => Some(self.takes_writes(node)?),
            None => None,
        };
        let prepare = match record.get("prepare") {
            Some(node) => self.statements_before(node)?,
            None => Vec::new(),
        };
        let speaker = speaker??;
        let missing = match speaker {
            Speaker::Dbapi if driver.is_none() => Some((DBAPI, "driver", "pg8000.dbapi")),
            Speaker::Jdbc { .. } if url.is_none() => {
                Some((JDBC, "url", "\"jdbc:my-database://{node.address}:{ports.client}/\""))
            }
            _ => None,
        };
        if let Some((program, key, example)) = missing {
            self.needs(node, &format!("the program {program}"), key, example);
            return None;
        }
        Some(ClientProgram {
            speaker,
            speaks: speaks?,
            driver: driver.map(|driver| driver.value).unwrap_or_default(),
            files,
            url: url.map_or(Some(Template::default()), |url| url)?,
            options,
            takes_writes,
            prepare,
        })
    }

    /// What the program speaks: one that ships only what it does, any other what the file says.
    fn speaks(&mut self, record: &Record<'_>, node: &Node, speaker: Option<&Speaker>) -> Option<Speaks> {
        let written = match record.get("speaks") {
            Some(node) => Some(self.decoder.word(node, "kind of session", SPEAKS)?),
            None => None,
        };
        let own = match speaker {
            Some(Speaker::Dbapi) => Some((DBAPI, SQL)),
            Some(Speaker::Jdbc { .. }) => Some((JDBC, SQL)),
            Some(Speaker::Mongo) => Some((MONGO, KEYS)),
            Some(Speaker::Own { .. }) | None => None,
        };
        if let (Some(written), Some((program, own))) = (&written, own)
            && written.value != own
        {
            self.decoder.findings.add(
                "no-choice",
                written.at,
                format!("the program {program} speaks {own} and nothing else"),
                "not what it speaks",
                format!("write `speaks: {own}`, or remove it"),
            );
            return None;
        }
        match written.map(|written| written.value).or(own.map(|(_, own)| own)) {
            Some(KEYS) => self.without_sql(record).then_some(Speaks::Keys),
            _ => Some(Speaks::Sql(self.dialect(record, node)?)),
        }
    }

    fn dialect(&mut self, record: &Record<'_>, node: &Node) -> Option<SqlDialect> {
        let Some(dialect) = record.get("dialect") else {
            self.needs(node, "the protocol process", "dialect", "postgres");
            return None;
        };
        Some(match self.decoder.word(dialect, "dialect", DIALECTS)?.value {
            "mysql" => SqlDialect::Mysql,
            STANDARD => SqlDialect::Standard,
            _ => SqlDialect::Postgres,
        })
    }

    /// Whether nothing that is about SQL stands beside a program that speaks keys.
    fn without_sql(&mut self, record: &Record<'_>) -> bool {
        let found = OF_SQL.iter().find_map(|key| Some((key, record.key_at(key)?)));
        if let Some((key, at)) = found {
            let message = format!("`{key}` is about SQL, and the program speaks keys");
            self.decoder.findings.add("unused-key", at, message, "does nothing here", "remove it");
        }
        found.is_none()
    }

    /// One of those that ship, or a command.
    fn speaker(&mut self, node: &Node, record: &Record<'_>) -> Option<Speaker> {
        let speaker = match node.value {
            yaml::Value::Scalar { .. } => match self.decoder.word(node, "client program", PROGRAMS)?.value {
                JDBC => return Some(Speaker::Jdbc { class_path: self.class_path(record)? }),
                MONGO => Speaker::Mongo,
                _ => Speaker::Dbapi,
            },
            _ => {
                let (program, arguments) = self.command(node, Context::Machine)?;
                Speaker::Own { program, arguments }
            }
        };
        if let Some(at) = record.key_at("class-path") {
            let message = "`class-path` does nothing without the program jdbc";
            self.decoder.findings.add("unused-key", at, message, "does nothing here", "take it out");
        }
        Some(speaker)
    }

    fn class_path(&mut self, record: &Record<'_>) -> Option<Vec<Template>> {
        let Some(node) = record.get("class-path") else { return Some(Vec::new()) };
        let items = self.decoder.list(node, "`class-path`", 1)?;
        items
            .iter()
            .map(|item| self.template(item, "a part of the class path", Context::Machine, false))
            .collect()
    }

    fn driver_files(&mut self, node: &Node) -> Option<DriverFiles> {
        let record = self.decoder.record(node, &DRIVER_FILES)?;
        match record.first_of(&["pip", "maven"])? {
            ("pip", entry) => Some(DriverFiles::Wheels(self.wheels(&entry.value)?)),
            (_, entry) => Some(DriverFiles::Jars(self.jars(&entry.value)?)),
        }
    }

    fn wheels(&mut self, node: &Node) -> Option<Vec<PinnedWheel>> {
        let mut wheels = Vec::new();
        for entry in self.decoder.entries(node, "`pip`")? {
            let is_plain = |part: &str| {
                let sound = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '+');
                part.starts_with(|c: char| c.is_ascii_alphanumeric()) && part.chars().all(sound)
            };
            let parts =
                entry.key.split_once("==").filter(|(name, version)| is_plain(name) && is_plain(version));
            let Some((name, version)) = parts else {
                self.decoder.findings.add(
                    "bad-wheel",
                    entry.key_at,
                    format!("`{}` names no wheel", yaml::wording::shortened(&entry.key)),
                    "not the form of one",
                    "write `name==version`, such as `pg8000==1.31.2`, with its SHA-256 behind it",
                );
                return None;
            };
            wheels.push(PinnedWheel {
                name: name.to_owned(),
                version: version.to_owned(),
                sha256: self.builds(&entry.value)?,
            });
        }
        Some(wheels)
    }

    /// The checksum of a wheel, or those of its builds.
    fn builds(&mut self, node: &Node) -> Option<Vec<String>> {
        if let yaml::Value::Scalar { .. } = node.value {
            return Some(vec![self.checksum(node)?]);
        }
        let items = self.decoder.list(node, "the checksums of a wheel", 1)?;
        items.iter().map(|item| self.checksum(item)).collect()
    }

    fn statements_before(&mut self, node: &Node) -> Option<Vec<Template>> {
        let items = self.decoder.list(node, "`prepare`", 1)?;
        items.iter().map(|item| self.template(item, "a statement", Context::Node, false)).collect()
    }

    fn takes_writes(&mut self, node: &Node) -> Option<(String, Vec<String>)> {
        let record = self.decoder.record(node, &TAKES_WRITES)?;
        let query = record.get("query").and_then(|node| self.decoder.text(node, "the query"));
        let is = record.get("is").and_then(|node| self.texts(node, "`is`"));
        Some((query?.value, is?))
    }
}
