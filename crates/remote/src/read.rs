//! A command file's text to what it says, or to every mistake in it with its place.
//!
//! Owns which values make sense together. The keys are `language`'s.

use std::collections::BTreeSet;
use std::time::Duration;

use yaml::template::{Names, Scope, Template};
use yaml::wording::shortened;
use yaml::{Decoder, Findings, Node, Record, Rejection, Spot, Text, tree};

use crate::command_file::{CommandFile, ID, LookStep, Step, Tested, WrittenFor};
use crate::language::{COMMAND_FILE, LANGUAGE, LOOK, MOST_EXIT, PARAMETER, STEP, TESTED, WRITTEN_FOR};
use crate::parameter::{Kind, Parameter};

/// How long a command may take where the file does not say.
const WITHIN: Duration = Duration::from_secs(10);
/// And at most.
const WITHIN_MAX: Duration = Duration::from_secs(300);
/// Programs that read an argument as a program of their own.
const SHELLS: &[&str] = &["sh", "bash", "dash", "ash", "ksh", "zsh", "python3", "python", "perl"];

/// Reads a command file. `name` is what messages call it.
///
/// # Errors
/// When it is no sound command file, with every mistake found.
pub fn read(name: &str, text: &str) -> Result<CommandFile, Rejection> {
    let mut findings = Findings::default();
    let file = match tree::read(text, 0, 0, &LANGUAGE) {
        Ok(root) => {
            let mut reader = Reader {
                decoder: Decoder::new(&LANGUAGE),
                text,
                parameters: Vec::new(),
                declared: Vec::new(),
                used: BTreeSet::new(),
            };
            let file = reader.file(&root);
            findings = reader.decoder.findings;
            file
        }
        Err(finding) => {
            findings.push(*finding);
            None
        }
    };
    let texts = [Text { name: name.to_owned(), text: text.to_owned() }];
    match file.filter(|_| findings.is_empty()) {
        Some(file) => Ok(file),
        None => Err(findings.into_rejection(&texts, &LANGUAGE)),
    }
}

struct Reader<'t> {
    decoder: Decoder,
    text: &'t str,
    parameters: Vec<Parameter>,
    /// Names of parameters, also of those that are not sound.
    declared: Vec<(String, Spot)>,
    /// Names that a command has.
    used: BTreeSet<String>,
}

impl Reader<'_> {
    fn file(&mut self, root: &Node) -> Option<CommandFile> {
        let record = self.decoder.record(root, &COMMAND_FILE)?;
        let name = record.get("fault").and_then(|node| self.decoder.name(node, "the fault's name"));
        let summary = record.get("summary").and_then(|node| self.decoder.text(node, "the summary"));
        let lasts = record.get("lasts").map(|node| self.decoder.flag(node, "`lasts`"));
        // Parameters are known to all commands.
        let sound = record.get("parameters").is_none_or(|node| self.parameters(node).is_some());
        let written_for = record.get("written-for").and_then(|node| self.written_for(node));
        let strike = record.get("do").and_then(|node| self.steps(node, "`do`"));
        let undo = record.get("undo").and_then(|node| self.steps(node, "`undo`"));
        let stands = record.get("stands").and_then(|node| self.looks(node, "`stands`"));
        let gone = record.get("gone").and_then(|node| self.looks(node, "`gone`"));
        let tested = record.get("tested").and_then(|node| self.tested(node));
        let (strike, undo, stands, gone) = (strike?, undo?, stands?, gone?);
        self.compare(&record, &stands, &gone);
        self.refuse_unused();
        sound.then_some(CommandFile {
            name: name?.value,
            summary: summary?.value,
            written_for: written_for?,
            lasts: lasts.is_none_or(|lasts| lasts.is_none_or(|lasts| lasts.value)),
            parameters: std::mem::take(&mut self.parameters),
            strike,
            undo,
            stands,
            gone,
            tested: tested?,
        })
    }

    fn written_for(&mut self, node: &Node) -> Option<WrittenFor> {
        let record = self.decoder.record(node, &WRITTEN_FOR)?;
        let tool = record.get("tool").and_then(|node| self.decoder.text(node, "the tool"));
        let version = record.get("version").and_then(|node| self.decoder.text(node, "the version"));
        let asked_by = record.get("asked-by").and_then(|node| self.step(node));
        Some(WrittenFor { tool: tool?.value, version: version?.value, asked_by: asked_by? })
    }

    fn parameters(&mut self, node: &Node) -> Option<()> {
        let mut sound = Some(());
        for (name, node) in self.decoder.named(node, "`parameters`")? {
            if name.value == ID {
                let message = format!("`{ID}` is known in every command already");
                let help = "give the parameter another name";
                self.decoder.findings.add("name-taken", name.at, message, "taken", help);
                continue;
            }
            self.declared.push((name.value.clone(), name.at));
            match self.parameter(&name.value, node) {
                Some(parameter) => self.parameters.push(parameter),
                None => sound = None,
            }
        }
        sound
    }

    fn parameter(&mut self, name: &str, node: &Node) -> Option<Parameter> {
        let record = self.decoder.record(node, &PARAMETER)?;
        let kind = record.get("kind").and_then(|node| self.decoder.word(node, "kind", Kind::NAMES))?;
        let kind = Kind::WORDS.iter().find(|(word, _)| *word == kind.value)?.1;
        let meaning = record.get("meaning").and_then(|node| self.decoder.text(node, "the meaning"));
        let example = record.get("example").and_then(|node| self.value(node, kind));
        let default = record.get("default").map(|node| self.value(node, kind));
        let default = default.map_or(Some(None), |default| default.map(Some));
        Some(Parameter {
            name: name.to_owned(),
            kind,
            meaning: meaning?.value,
            default: default?,
            example: example?,
        })
    }

    fn value(&mut self, node: &Node, kind: Kind) -> Option<String> {
        let written = self.decoder.text(node, "the value")?;
        if kind.accepted(&written.value).is_some() {
            return Some(written.value);
        }
        let message = format!("`{}` is not of the parameter's kind", shortened(&written.value));
        let help = format!("write {}", kind.form());
        self.decoder.findings.add("not-of-kind", written.at, message, "another kind of value", help);
        None
    }

    fn steps(&mut self, node: &Node, what: &str) -> Option<Vec<Step>> {
        let items = self.decoder.list(node, what, 1)?;
        let steps: Vec<Option<Step>> = items.iter().map(|item| self.step(item)).collect();
        steps.into_iter().collect()
    }

    fn step(&mut self, node: &Node) -> Option<Step> {
        let record = self.decoder.record(node, &STEP)?;
        self.command(&record)
    }

    fn looks(&mut self, node: &Node, what: &'static str) -> Option<Vec<LookStep>> {
        let items = self.decoder.list(node, what, 1)?;
        let looks: Vec<Option<LookStep>> = items.iter().map(|item| self.look(item, what)).collect();
        looks.into_iter().collect()
    }

    fn look(&mut self, node: &Node, what: &'static str) -> Option<LookStep> {
        let record = self.decoder.record(node, &LOOK)?;
        let step = self.command(&record);
        let exit =
            record.get("exit").map(|node| self.decoder.count(node, "an expected exit code", 0, MOST_EXIT));
        let exit = exit.map_or(Some(0), |exit| exit.and_then(|exit| u8::try_from(exit.value).ok()));
        let mut has = [None, None];
        for (text, key) in has.iter_mut().zip(["has", "lacks"]) {
            if let Some(node) = record.get(key) {
                *text = Some(self.template(node, &format!("`{key}`"))?);
            }
        }
        let changed = record.get("changed").and_then(|node| self.decoder.flag(node, "`changed`"));
        let changed = changed.is_some_and(|changed| changed.value);
        if let (true, "`gone`", Some(at)) = (changed, what, record.key_at("changed")) {
            let message =
                "`changed` compares with the output before the strike, which says nothing in `gone`";
            let help = "say with `exit`, `has` or `lacks` what the machine is like without the fault";
            self.decoder.findings.add("changed-in-gone", at, message, "only in `stands`", help);
            return None;
        }
        let [has, lacks] = has;
        Some(LookStep { step: step?, exit: exit?, has, lacks, changed })
    }

    fn command(&mut self, record: &Record<'_>) -> Option<Step> {
        let items = record.get("run").and_then(|node| self.decoder.list(node, "a command", 1));
        let within = record.get("within").map_or(Some(WITHIN), |node| self.within(node));
        let items = items?;
        let words: Vec<Option<Template>> =
            items.iter().map(|item| self.template(item, "an argument")).collect();
        let words: Vec<Template> = words.into_iter().collect::<Option<_>>()?;
        self.check_program(items, &words)?;
        Some(Step { run: words, within: within? })
    }

    fn within(&mut self, node: &Node) -> Option<Duration> {
        let within = self.decoder.duration(node, "the time limit", "s")?;
        if (Duration::from_secs(1)..=WITHIN_MAX).contains(&within.value) {
            return Some(within.value);
        }
        let message = format!("a command cannot be given {}", yaml::units::format_duration(within.value));
        let help = "write 1s to 5m; a run waits for it";
        self.decoder.findings.add("bad-limit", within.at, message, "too short or too long", help);
        None
    }

    /// The program is the file's own word, or a path that the user gives; and no shell reads what the user gives.
    fn check_program(&mut self, items: &[Node], words: &[Template]) -> Option<()> {
        let (program, arguments) = words.split_first()?;
        let is_path = |name: &str| {
            let kind =
                self.parameters.iter().find(|parameter| parameter.name == name).map(|found| found.kind);
            // Of one that is not sound enough is said already.
            kind.map_or(name != ID, |kind| kind == Kind::Path)
        };
        if program.names().next().is_some() && !program.only_name().is_some_and(is_path) {
            self.decoder.findings.add(
                "program-by-parameter",
                items[0].at,
                "which program runs cannot depend on a value that is no path",
                "the program",
                "name the program; or make it one parameter of the kind `path`, alone",
            );
            return None;
        }
        let program = program.filled(&Scope::default());
        let is_shell = SHELLS.contains(&program.rsplit('/').next().unwrap_or_default());
        let any = |name: &str| (name.to_owned(), "x".to_owned());
        let script = arguments.iter().position(|word| {
            let values = word.names().map(any).collect();
            is_script_flag(&word.filled(&Scope { values, ..Scope::default() }))
        });
        let Some(script) = script.filter(|_| is_shell) else { return Some(()) };
        let holds = arguments.get(script + 1).is_some_and(|script| script.names().next().is_some());
        if holds {
            self.decoder.findings.add(
                "name-in-script",
                items[script + 2].at,
                "a parameter inside a script could be read as part of the script",
                "a script with a parameter in it",
                "hand it over as an argument: [sh, -c, 'kill -9 \"$1\"', sh, \"{pid}\"]",
            );
            return None;
        }
        Some(())
    }

    fn template(&mut self, node: &Node, what: &str) -> Option<Template> {
        let text = self.decoder.text(node, what)?;
        if text.value.chars().any(|c| c.is_control() && c != '\n') {
            let help = "write text without control characters";
            let message = format!("{what} holds a control character");
            self.decoder.findings.add("control-character", text.at, message, "in here", help);
            return None;
        }
        let declared = self.declared.iter().map(|(name, _)| name.clone());
        let names = Names {
            values: declared.chain([ID.to_owned()]).collect(),
            lists: Vec::new(),
            none: "no parameter",
            advice: "name it under `parameters`; ",
            example: ID,
        };
        let template = Template::decode(&mut self.decoder, self.text, &text, &names, false)?;
        self.used.extend(template.names().map(str::to_owned));
        Some(template)
    }

    /// The same looks cannot show that a fault stands and that it is gone.
    fn compare(&mut self, record: &Record<'_>, stands: &[LookStep], gone: &[LookStep]) {
        let Some(at) = record.key_at("gone").filter(|_| stands == gone) else { return };
        let message = "`stands` and `gone` are the same, so that one of them is wrong at any time";
        let help = "say what is different once it is undone: another `exit`, `has` or `lacks`";
        self.decoder.findings.add("same-looks", at, message, "the same as `stands`", help);
    }

    fn refuse_unused(&mut self) {
        for (name, at) in self.declared.iter().filter(|(name, _)| !self.used.contains(name)) {
            let message = format!("no command has the parameter `{name}`");
            let help = format!("write `{{{name}}}` where its value belongs, or take the parameter out");
            self.decoder.findings.add("unused-parameter", *at, message, "used nowhere", help);
        }
    }

    fn tested(&mut self, node: &Node) -> Option<Tested> {
        let record = self.decoder.record(node, &TESTED)?;
        let here = record.get("here").and_then(|node| self.decoder.flag(node, "`here`"))?;
        let (key, unused) = if here.value { ("with", "from") } else { ("from", "with") };
        if let Some(at) = record.key_at(unused) {
            let message = format!("`{unused}` says nothing where `here` is {}", here.value);
            let help = format!("write `{key}` instead");
            self.decoder.findings.add("unused-key", at, message, "does nothing here", help);
            return None;
        }
        let Some(node) = record.get(key) else {
            let message = format!("`tested` needs `{key}` where `here` is {}", here.value);
            let help = "say with which version, and on what; or where the commands are from";
            self.decoder.findings.add("missing-key", here.at, message, format!("without `{key}`"), help);
            return None;
        };
        let text = self.decoder.text(node, &format!("`{key}`"))?.value;
        Some(if here.value { Tested::Here(text) } else { Tested::From(text) })
    }
}

/// `-c`, `-e`, also with other letters before: `-ec`.
fn is_script_flag(word: &str) -> bool {
    word.starts_with('-') && !word.starts_with("--") && word.ends_with(['c', 'e'])
}
