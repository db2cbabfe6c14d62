//! Processes, and the questions that are put to them.
//!
//! Owns reading these parts of the file.

use yaml::Entry;

use super::super::language::asking::{
    ASK, CQL, EXPECT, HAND_OVER, HTTP, LEADS, MONGO, MYSQL, POSTGRES, REDIS, ROLES, STEP, WAYS_TO_ASK,
};
use super::super::language::{
    CONSISTENCIES, EVERY, NONE, ONLY, PLACES, PREPARATION, PROCESS, SHARES, SYNCHRONOUS,
};
use super::super::{Ask, Consistency, Expect, How, Leads, Only, Preparation, Roles, Step, WrittenFile};
use super::*;

/// How long a process may take to be ready where the file does not say.
const READY_WITHIN: Duration = Duration::from_secs(20);
/// How long a step may take where the file does not say.
const STEP_WITHIN: Duration = Duration::from_secs(30);

impl Reader<'_> {
    pub(super) fn processes(&mut self, node: &Node) -> Option<Vec<Process>> {
        let items = self.decoder.list(node, "processes", 1)?;
        let read: Vec<Option<Process>> = items.iter().map(|item| self.process(item)).collect();
        let processes: Vec<Process> = read.into_iter().collect::<Option<_>>()?;
        for (number, process) in processes.iter().enumerate() {
            if processes[..number].iter().any(|earlier| earlier.name == process.name) {
                self.decoder.findings.add(
                    "duplicate-name",
                    items[number].head,
                    format!("two processes are named `{}`", process.name),
                    "the same name again",
                    "give it another name: its log has this name",
                );
                return None;
            }
        }
        Some(processes)
    }

    fn process(&mut self, node: &Node) -> Option<Process> {
        let record = self.decoder.record(node, &PROCESS)?;
        let name = record.get("name").and_then(|node| self.decoder.name(node, "the process's name"));
        let command = record.get("command").and_then(|node| self.command(node, Context::Start));
        let becomes = record.get("becomes").map(|node| self.program(node));
        let environment = self.values(&record, "environment", Context::Start);
        let files = self.files(&record);
        let prepare = match record.get("prepare") {
            Some(node) => self.preparations(node),
            None => Some(Vec::new()),
        };
        let start = record.get("start").and_then(|node| self.decoder.word(node, "way to start", STARTS));
        let form = record.get("form").map_or(Some(Vec::new()), |node| self.asks(node, "`form`"));
        let ready = record.get("ready").and_then(|node| self.ask(node));
        let turns_down = record.get("turns-down").and_then(|node| self.texts(node, "`turns-down`"));
        let killed = record.get("killed").map_or(Some(Vec::new()), |node| self.killed(node));
        let stop = record.get("stop").and_then(|node| self.decoder.word(node, "signal", SIGNALS));
        let (program, arguments) = command?;
        Some(Process {
            name: name?.value,
            becomes: becomes.unwrap_or_else(|| Some(program.clone()))?,
            program,
            arguments,
            environment,
            files: files?,
            prepare: prepare?,
            first_alone: start.is_some_and(|start| start.value == FIRST_ALONE),
            form: form?,
            ready: ready?,
            turns_down: turns_down.unwrap_or_default(),
            killed: killed?,
            stop: if stop.is_some_and(|stop| stop.value == INT) {
                StopSignal::Interrupt
            } else {
                StopSignal::Terminate
            },
        })
    }

    fn preparations(&mut self, node: &Node) -> Option<Vec<Preparation>> {
        let items = self.decoder.list(node, "`prepare`", 1)?;
        let read: Vec<Option<Preparation>> = items
            .iter()
            .map(|item| {
                let record = self.decoder.record(item, &PREPARATION)?;
                let command = record.get("command").and_then(|node| self.command(node, Context::Start));
                let on = record.get("on").and_then(|node| self.decoder.word(node, "place", SHARES));
                let (program, arguments) = command?;
                Some(Preparation { program, arguments, everywhere: on.is_some_and(|on| on.value == EVERY) })
            })
            .collect();
        read.into_iter().collect()
    }

    fn files(&mut self, record: &Record<'_>) -> Option<Vec<WrittenFile>> {
        let mut files = match record.get("files") {
            Some(node) => {
                let entries = self.decoder.entries(node, "`files`")?;
                let read: Vec<_> = entries.iter().map(|entry| self.file(entry)).collect();
                read.into_iter().collect::<Option<Vec<_>>>()?
            }
            None => Vec::new(),
        };
        let Some(node) = record.get("keeps") else { return Some(files) };
        for item in self.decoder.list(node, "`keeps`", 1)? {
            let name = self.decoder.text(item, "a file's name")?;
            match files.iter_mut().find(|file| file.path == name.value) {
                Some(file) => file.is_kept = true,
                None => {
                    let known: Vec<String> = files.iter().map(|file| file.path.clone()).collect();
                    self.not_listed(&name, "file", "files", &known);
                    return None;
                }
            }
        }
        Some(files)
    }

    fn file(&mut self, entry: &Entry) -> Option<WrittenFile> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        if !entry.key.chars().all(is_plain) || entry.key.starts_with('.') {
            self.decoder.findings.add(
                "bad-path",
                entry.key_at,
                format!("`{}` is not a file at the root of the volume", yaml::wording::shortened(&entry.key)),
                "not a file's name",
                "write only the name, such as `my-database.conf`; commands find it as `{volume}/my-database.conf`",
            );
            return None;
        }
        let content = self.template(&entry.value, "the file's content", Context::Start, false)?;
        Some(WrittenFile { path: entry.key.clone(), content, is_kept: false })
    }

    fn ask(&mut self, node: &Node) -> Option<Ask> {
        let record = self.decoder.record(node, &ASK)?;
        self.asked(&record, Context::Node, READY_WITHIN)
    }

    pub(super) fn hand_over(&mut self, node: &Node) -> Option<Ask> {
        let record = self.decoder.record(node, &HAND_OVER)?;
        let how = self.how(&record, Context::HandOver)?;
        Some(Ask { how, expect: Expect::default(), within: Duration::ZERO })
    }

    fn asked(&mut self, record: &Record<'_>, context: Context, within: Duration) -> Option<Ask> {
        let how = self.how(record, context);
        let expect = match record.get("expect") {
            Some(node) => self.expect(node, context)?,
            None => Expect::default(),
        };
        let within = match record.get("within") {
            Some(node) => self.decoder.duration(node, "`within`", "s")?.value,
            None => within,
        };
        let how = how?;
        let has_status = expect.status.is_some() && !matches!(how, How::Http { .. });
        let is_bare = matches!(how, How::Tcp(_)) && expect != Expect::default();
        if has_status || is_bare {
            self.decoder.findings.add(
                "no-answer",
                record.get("expect")?.head,
                "this kind of answer has nothing to compare with",
                "never there",
                "only `http` returns a status, and `tcp` returns nothing to compare",
            );
            return None;
        }
        Some(Ask { how, expect, within })
    }

    fn how(&mut self, record: &Record<'_>, context: Context) -> Option<How> {
        // A table without one of them never has it.
        let entry = record.first_of(WAYS_TO_ASK)?;
        match entry {
            ("http", entry) => self.http(&entry.value, context),
            ("tcp", entry) => Some(How::Tcp(self.port(&entry.value)?)),
            ("redis", entry) => self.redis(&entry.value, context),
            ("mysql", entry) => self.mysql(&entry.value, context),
            ("postgres", entry) => self.postgres(&entry.value, context),
            ("cql", entry) => self.cql(&entry.value, context),
            ("mongo", entry) => self.mongo(&entry.value, context),
            (_, entry) => {
                let (program, arguments) = self.command(&entry.value, context)?;
                Some(How::Command { program, arguments })
            }
        }
    }

    fn http(&mut self, node: &Node, context: Context) -> Option<How> {
        let record = self.decoder.record(node, &HTTP)?;
        let port = record.get("port").and_then(|node| self.port(node));
        let (method, entry) = record.first_of(&["get", "post"])?;
        let path = self.template(&entry.value, "the path", context, false);
        if let yaml::Value::Scalar { text, .. } = &entry.value.value
            && !text.starts_with(['/', '{'])
        {
            let message = format!("the path `{text}` does not begin with `/`");
            let help = format!("write `{method}: /{text}`");
            self.decoder.findings.add("bad-path", entry.value.head, message, "not a path", help);
        }
        let body = match record.get("body") {
            Some(node) => Some(self.template(node, "the body", context, false)?),
            None => None,
        };
        let method = if method == "get" { "GET" } else { "POST" };
        Some(How::Http { method, path: path?, port: port?, body })
    }

    fn redis(&mut self, node: &Node, context: Context) -> Option<How> {
        let record = self.decoder.record(node, &REDIS)?;
        let port = record.get("port").and_then(|node| self.port(node));
        let items = self.decoder.list(record.get("ask")?, "a command", 1)?;
        let words: Vec<_> = items.iter().map(|item| self.template(item, "a word", context, true)).collect();
        Some(How::Redis { words: words.into_iter().collect::<Option<_>>()?, port: port? })
    }

    fn mysql(&mut self, node: &Node, context: Context) -> Option<How> {
        let record = self.decoder.record(node, &MYSQL)?;
        let query = record.get("query").and_then(|node| self.template(node, "the statement", context, false));
        let port = record.get("port").and_then(|node| self.port(node));
        let user = record.get("user").and_then(|node| self.decoder.text(node, "the user"));
        Some(How::Mysql { query: query?, port: port?, user: user?.value })
    }

    fn postgres(&mut self, node: &Node, context: Context) -> Option<How> {
        let record = self.decoder.record(node, &POSTGRES)?;
        let query = record.get("query").and_then(|node| self.template(node, "the statement", context, false));
        let port = record.get("port").and_then(|node| self.port(node));
        let user = record.get("user").and_then(|node| self.decoder.text(node, "the user"));
        let database = record.get("database").and_then(|node| self.decoder.text(node, "the database"));
        Some(How::Postgres { query: query?, port: port?, user: user?.value, database: database?.value })
    }

    fn cql(&mut self, node: &Node, context: Context) -> Option<How> {
        let record = self.decoder.record(node, &CQL)?;
        let query = record.get("query").and_then(|node| self.template(node, "the statement", context, false));
        let port = record.get("port").and_then(|node| self.port(node));
        let consistency =
            record.get("consistency").map(|node| self.decoder.word(node, "consistency", CONSISTENCIES));
        let consistency = match consistency {
            None => Consistency::One,
            Some(word) => match word?.value {
                "one" => Consistency::One,
                "quorum" => Consistency::Quorum,
                _ => Consistency::All,
            },
        };
        Some(How::Cql { query: query?, port: port?, consistency })
    }

    fn mongo(&mut self, node: &Node, context: Context) -> Option<How> {
        let record = self.decoder.record(node, &MONGO)?;
        let command = record.get("ask").and_then(|node| self.template(node, "the command", context, false));
        let port = record.get("port").and_then(|node| self.port(node));
        Some(How::Mongo { command: command?, port: port? })
    }

    fn expect(&mut self, node: &Node, context: Context) -> Option<Expect> {
        let record = self.decoder.record(node, &EXPECT)?;
        let status = record.get("status").and_then(|node| self.decoder.count(node, "a status", 100, 599));
        let field = record.get("field").and_then(|node| self.decoder.text(node, "the field"));
        let is = record.get("is").and_then(|node| self.texts(node, "`is`"));
        let text = match record.get("text") {
            Some(node) => Some(self.template(node, "the text", context, false)?),
            None => None,
        };
        Some(Expect {
            status: status.and_then(|status| u16::try_from(status.value).ok()),
            field: field.map(|field| field.value).zip(is),
            text,
        })
    }

    /// How a node is asked whether it leads; nothing within where no node does.
    pub(super) fn roles(&mut self, node: &Node) -> Option<Option<Roles>> {
        if matches!(node.value, yaml::Value::Scalar { .. }) {
            return self.decoder.word(node, "way to tell who leads", &[NONE]).map(|_| None);
        }
        let record = self.decoder.record(node, &ROLES)?;
        let how = self.how(&record, Context::Node);
        let leads = record.get("leads").and_then(|node| self.leads(node));
        let identity = record.get("identity").and_then(|node| self.decoder.text(node, "the field"));
        let position = record.get("position").and_then(|node| self.texts(node, "`position`"));
        let ask = Ask { how: how?, expect: Expect::default(), within: Duration::ZERO };
        Some(Some(Roles {
            ask,
            leads: leads?,
            identity: identity.map(|field| field.value),
            position: position.unwrap_or_default(),
        }))
    }

    fn leads(&mut self, node: &Node) -> Option<Leads> {
        let record = self.decoder.record(node, &LEADS)?;
        let field = record.get("field").and_then(|node| self.decoder.text(node, "the field"))?.value;
        match record.first_of(&["is", "same-as"])? {
            ("is", entry) => Some(Leads::Is(field, self.texts(&entry.value, "`is`")?)),
            (_, entry) => Some(Leads::Same(field, self.decoder.text(&entry.value, "the field")?.value)),
        }
    }

    pub(super) fn once_ready_and_bootstrap(
        &mut self,
        record: &Record<'_>,
    ) -> (Option<Vec<Ask>>, Option<Vec<Step>>) {
        let once_ready =
            record.get("once-ready").map_or(Some(Vec::new()), |node| self.asks(node, "`once-ready`"));
        (once_ready, record.get("bootstrap").map_or(Some(Vec::new()), |node| self.steps(node)))
    }

    fn asks(&mut self, node: &Node, what: &str) -> Option<Vec<Ask>> {
        let items = self.decoder.list(node, what, 1)?;
        let read: Vec<Option<Ask>> = items
            .iter()
            .map(|item| {
                let record = self.decoder.record(item, &ASK)?;
                self.asked(&record, Context::Node, STEP_WITHIN)
            })
            .collect();
        read.into_iter().collect()
    }

    fn steps(&mut self, node: &Node) -> Option<Vec<Step>> {
        let items = self.decoder.list(node, "`bootstrap`", 1)?;
        let read: Vec<Option<Step>> = items.iter().map(|item| self.step(item)).collect();
        read.into_iter().collect()
    }

    fn step(&mut self, node: &Node) -> Option<Step> {
        let record = self.decoder.record(node, &STEP)?;
        let ask = self.asked(&record, Context::Node, STEP_WITHIN);
        let on = record.get("on").and_then(|node| self.decoder.word(node, "place", PLACES));
        let only = record.get("only").and_then(|node| self.decoder.word(node, "kind of replication", ONLY));
        let only =
            only.map(|only| if only.value == SYNCHRONOUS { Only::Synchronous } else { Only::Asynchronous });
        Some(Step { ask: ask?, everywhere: on.is_some_and(|on| on.value == EVERY), only })
    }
}
