//! The user's own transactions, in the language of pgbench's scripts.
//!
//! Each transaction is one of the scripts, chosen by weight. `parse` makes a program of a script, `expression`,
//! `evaluate` and `functions` compute, `run` carries it out. The scripts that pgbench brings (`tpcb-like`,
//! `simple-update`, `select-only`) are there by name and bring its tables at the load's scale.
//!
//! What a script must keep only its user knows: `conditions` are queries that find nothing when all is well, and the
//! check `script-conditions` judges them. Where a builtin is used, that its tables add up is a condition as well.
//!
//! Options: `scripts.N.text` or `scripts.N.builtin`, `scripts.N.name`, `scripts.N.weight`, `setup`, `conditions.NAME`.

mod evaluate;
mod expression;
mod functions;
mod parse;
mod run;
mod value;
mod variables;

use std::any::Any;
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use capabilities::workloads::{self, WorkloadFacts};
use client::{Dialect, Session, SessionError, SessionFuture, SqlSession};
use history::{Action, ConditionFound};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{Rng, RngExt};
use rand_chacha::rand_core::SeedableRng;

use self::parse::Program;
use self::value::Value;
use self::variables::{DEFAULT_SEED, Names, Variables};
use crate::dialect::beginning_of_read;
use crate::options::{ConfigurationError, Options};
pub use crate::script_error::{Problem, ScriptError};
use crate::tpcb;
use crate::workload::{Attempt, ClientState, Request, Statement, TableSetup, Workload, refused};

const NAME: &str = "script";

/// What a load's results call all transactions, connecting and tries in vain.
const RESERVED: [&str; 3] = ["transaction", "connect", "retry"];

/// Examples of each violated condition.
const EXAMPLES: usize = 3;

/// The scripts that pgbench brings.
const BUILTINS: [(&str, &str); 3] = [
    (
        "tpcb-like",
        "\\set aid random(1, 100000 * :scale)\n\\set bid random(1, 1 * :scale)\n\\set tid random(1, 10 * :scale)\n\
         \\set delta random(-5000, 5000)\nBEGIN;\n\
         UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;\n\
         SELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n\
         UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;\n\
         UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;\n\
         INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);\n\
         END;\n",
    ),
    (
        "simple-update",
        "\\set aid random(1, 100000 * :scale)\n\\set bid random(1, 1 * :scale)\n\\set tid random(1, 10 * :scale)\n\
         \\set delta random(-5000, 5000)\nBEGIN;\n\
         UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;\n\
         SELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n\
         INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);\n\
         END;\n",
    ),
    (
        "select-only",
        "\\set aid random(1, 100000 * :scale)\nSELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n",
    ),
];

/// What holds of pgbench's tables whichever of its scripts ran: every one of them writes an account and the history
/// together.
const BUILTIN_CONDITION: (&str, &str) = (
    "accounts-add-up",
    "SELECT concat('accounts ', accounts, ', history ', history) FROM \
     (SELECT coalesce(sum(abalance), 0) AS accounts FROM pgbench_accounts) AS a, \
     (SELECT coalesce(sum(delta), 0) AS history FROM pgbench_history) AS h WHERE accounts <> history",
);

/// One script.
struct Script {
    name: Cow<'static, str>,
    weight: u64,
    program: Program,
    /// Place of its first statement among all.
    first_statement: usize,
}

/// See the module.
pub struct Scripts {
    scripts: Vec<Script>,
    statements: Vec<Statement>,
    /// Of all variables that the scripts mention.
    names: Names,
    needs_pgbench: bool,
    setup: Option<String>,
    conditions: Vec<(String, String)>,
}

/// What a client remembers: the variables, from one transaction to the next.
#[derive(Debug, Default)]
struct ClientMemory {
    variables: Option<Rc<RefCell<Variables>>>,
}

impl Scripts {
    /// With these options.
    ///
    /// # Errors
    /// When one of them does not fit, or a script cannot be read.
    pub fn configured(given: &BTreeMap<String, String>) -> Result<Self, ConfigurationError> {
        let mut options = Options::new(NAME, given);
        let mut scripts: Vec<Script> = Vec::new();
        let mut statements = Vec::new();
        let mut names = Names::default();
        let mut needs_pgbench = false;
        let any_given = given.keys().any(|name| name.starts_with("scripts."));
        loop {
            let place = scripts.len();
            let option = |key: &str| format!("scripts.{place}.{key}");
            let (text, builtin) = (options.text(&option("text")), options.text(&option("builtin")));
            let (default_name, text) = match (text, builtin) {
                (Some(text), None) => (Cow::Owned(format!("script-{}", place + 1)), text),
                (None, Some(name)) => builtin_named(&options, &option("builtin"), name)?,
                (None, None) if place == 0 && !any_given => {
                    builtin_named(&options, &option("builtin"), BUILTINS[0].0)?
                }
                (None, None) => break,
                (Some(_), Some(name)) => {
                    return Err(options.bad(&option("builtin"), name, "the script has its own text"));
                }
            };
            needs_pgbench |= BUILTINS.iter().any(|known| known.1 == text);
            let name = options.text(&option("name")).map_or(default_name, |name| Cow::Owned(name.to_owned()));
            if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_')) {
                return Err(options.bad(
                    &option("name"),
                    &name,
                    "names are made of letters, digits, `-` and `_`",
                ));
            }
            if RESERVED.contains(&name.as_ref()) {
                return Err(options.bad(
                    &option("name"),
                    &name,
                    "results call something else so; write another name",
                ));
            }
            if scripts.iter().any(|known| known.name == name) {
                return Err(options.bad(&option("name"), &name, "another script has the same name"));
            }
            let weight = options.count(&option("weight"))?;
            let program = parse::parse(&name, text, &mut names).map_err(|source| {
                ConfigurationError::Script { workload: NAME.to_owned(), source: Box::new(source) }
            })?;
            let first_statement = statements.len();
            statements.extend(program.statements.iter().enumerate().map(|(number, sql)| Statement {
                name: format!("{name} {}: {}", number + 1, shortened(parse::original(sql))).into(),
                sql: sql.clone().into(),
                mysql: None,
                cql: None,
                standard: None,
                only: None,
            }));
            scripts.push(Script { name, weight, program, first_statement });
        }
        let setup = options.text("setup").map(str::to_owned);
        let own = own_conditions(&mut options)?;
        if scripts.is_empty() {
            let wanted = "the first script needs `scripts.0.text` or `scripts.0.builtin`";
            return Err(options.bad("scripts", "", wanted));
        }
        options.finish()?;
        let builtin = needs_pgbench.then_some(BUILTIN_CONDITION);
        let conditions = builtin.into_iter().chain(own);
        let conditions = conditions.map(|(name, query)| (name.to_owned(), query.to_owned())).collect();
        Ok(Scripts { scripts, statements, names, needs_pgbench, setup, conditions })
    }

    fn choose(&self, rng: &mut impl Rng) -> usize {
        let mut left = rng.random_range(0..self.scripts.iter().map(|script| script.weight).sum());
        for (place, script) in self.scripts.iter().enumerate() {
            if left < script.weight {
                return place;
            }
            left -= script.weight;
        }
        0
    }
}

fn builtin_named(
    options: &Options<'_>,
    option: &str,
    name: &str,
) -> Result<(Cow<'static, str>, &'static str), ConfigurationError> {
    let names: Vec<&str> = BUILTINS.iter().map(|known| known.0).collect();
    let found = BUILTINS.iter().find(|known| known.0 == name);
    let found =
        found.ok_or_else(|| options.bad(option, name, &format!("it is one of {}", names.join(", "))))?;
    Ok((Cow::Borrowed(found.0), found.1))
}

/// A statement's first words, without what a table of figures would have to quote.
fn shortened(sql: &str) -> String {
    const MOST_WORDS: usize = 4;
    const MOST_CHARACTERS: usize = 40;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '*' | '-');
    let words: Vec<String> = sql
        .split(|c: char| c.is_whitespace() || c == '(')
        .map(|word| word.chars().filter(|c| is_plain(*c)).collect::<String>())
        .filter(|word| !word.is_empty())
        .take(MOST_WORDS)
        .collect();
    words.join(" ").chars().take(MOST_CHARACTERS).collect()
}

impl Workload for Scripts {
    fn facts(&self) -> &'static WorkloadFacts {
        &workloads::SCRIPT
    }

    fn kinds(&self) -> Vec<&str> {
        if self.scripts.len() < 2 {
            Vec::new()
        } else {
            self.scripts.iter().map(|script| script.name.as_ref()).collect()
        }
    }

    fn statements(&self) -> &[Statement] {
        &self.statements
    }

    fn setup<'a>(&'a self, setup: &'a mut TableSetup<'_>) -> SessionFuture<'a, ()> {
        Box::pin(async move {
            if self.needs_pgbench {
                tpcb::create_and_load(setup.session.sql()?, setup.scale.max(1), setup.progress).await?;
            }
            let has_names = self.statements.iter().any(|statement| parse::has_names(&statement.sql));
            if has_names && setup.session.sql()?.dialect() != Dialect::Postgres {
                return Err(refused(
                    "\\gset and \\aset find the columns' names in PostgreSQL only".to_owned(),
                ));
            }
            if let Some(sql) = &self.setup {
                setup.session.sql()?.batch(sql).await?;
            }
            Ok(())
        })
    }

    fn draw(&self, client: &mut ClientState) -> Request {
        let script = self.choose(&mut client.rng);
        // What the transaction's own chance begins with.
        let numbers: [i64; 4] = client.rng.random();
        let (number, scale, first) = (client.client, client.scale, client.sequence == 0);
        client.sequence += 1;
        let seed: i64 = if first { client.rng.random() } else { 0 };
        let memory = client.memory.of::<ClientMemory>();
        let variables = memory.variables.get_or_insert_with(|| {
            let mut variables = Variables::default();
            for (name, value) in [
                ("client_id", i64::try_from(number).unwrap_or(i64::MAX)),
                ("scale", i64::from(scale.max(1))),
                (DEFAULT_SEED, seed),
                ("random_seed", seed),
            ] {
                variables.set_by_name(&self.names, name, Value::Integer(value));
            }
            Rc::new(RefCell::new(variables))
        });
        let details: Rc<dyn Any> = Rc::clone(variables) as Rc<dyn Any>;
        let name = self.scripts.get(script).map_or_else(Cow::default, |script| script.name.clone());
        let action = Action::Transaction { name, rolled_back: false, row: None };
        Request { details: Some(details), ..Request::plain(action, script, numbers) }
    }

    fn perform<'a>(
        &'a self,
        request: &'a mut Request,
        attempt: &'a mut Attempt<'_>,
    ) -> SessionFuture<'a, ()> {
        Box::pin(async move {
            let variables = request.details::<RefCell<Variables>>()?;
            let script = self.scripts.get(request.kind);
            let script = script.ok_or_else(|| refused(format!("there is no script {}", request.kind)))?;
            // A transaction that is tried again draws the same numbers again. Small and quick: it lives for one
            // transaction, and drawing it from the client's own must not cost more than the rest.
            let mut seed = [0; 32];
            for (bytes, number) in seed.chunks_exact_mut(8).zip(request.numbers) {
                bytes.copy_from_slice(&number.to_le_bytes());
            }
            let mut rng = Xoshiro256PlusPlus::from_seed(seed);
            run::run(script, &self.names, &variables, &mut rng, attempt).await
        })
    }

    fn final_read<'a>(&'a self, session: &'a mut Session) -> SessionFuture<'a, Vec<Action>> {
        Box::pin(async move {
            let session = session.sql()?;
            session.batch(beginning_of_read(session.dialect())).await?;
            let mut conditions = Vec::new();
            for (name, query) in &self.conditions {
                conditions.push(looked_at(session, name, query.trim().trim_end_matches(';')).await?);
            }
            session.batch("COMMIT").await?;
            Ok(vec![Action::ConditionsRead { conditions, counts: BTreeMap::new() }])
        })
    }
}

/// The conditions that a load states itself, by name.
fn own_conditions<'o>(options: &mut Options<'o>) -> Result<Vec<(&'o str, &'o str)>, ConfigurationError> {
    let own = options.under("conditions.");
    match own.iter().find(|(_, query)| !is_query(query)) {
        None => Ok(own),
        Some((name, query)) => {
            let wanted = "a condition is a query, which begins with SELECT, WITH, TABLE or VALUES";
            Err(options.bad(&format!("conditions.{name}"), query, wanted))
        }
    }
}

/// Whether a text may be a query, by its first word behind spaces, comments and parentheses.
fn is_query(text: &str) -> bool {
    let mut rest = text.trim_start_matches(|c: char| c.is_whitespace() || c == '(');
    while let Some((from, until)) =
        [("--", "\n"), ("/*", "*/")].iter().find(|(from, _)| rest.starts_with(from))
    {
        let behind = rest[from.len()..].split_once(until).map_or("", |(_, behind)| behind);
        rest = behind.trim_start_matches(|c: char| c.is_whitespace() || c == '(');
    }
    let word = rest.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
    ["SELECT", "WITH", "TABLE", "VALUES"].iter().any(|known| known.eq_ignore_ascii_case(word))
}

/// Runs a condition's query. It may return any columns: each row is recorded as text. The query may end with a comment, so the
/// parenthesis after it stands on a new line.
async fn looked_at(
    session: &mut dyn SqlSession,
    name: &str,
    query: &str,
) -> Result<ConditionFound, SessionError> {
    let uncounted = || refused(format!("condition {name}: its violations cannot be counted"));
    let found = |violations: u64, examples: Vec<String>| ConditionFound {
        name: name.to_owned(),
        violations,
        examples,
    };
    match session.dialect() {
        Dialect::Postgres => {
            let counted = format!(
                "SELECT violation::text, count(*) OVER () FROM (\n{query}\n) AS violation ORDER BY 1 LIMIT {EXAMPLES}"
            );
            let rows = session.batch(&counted).await?;
            let violations = match rows.len() {
                0 => 0,
                _ => rows.integer(0, 1).and_then(|count| u64::try_from(count).ok()).ok_or_else(uncounted)?,
            };
            let examples = (0..rows.len()).filter_map(|row| rows.text(row, 0)).map(str::to_owned).collect();
            Ok(found(violations, examples))
        }
        Dialect::Mysql | Dialect::Standard | Dialect::Cql => {
            let counted = session.batch(&format!("SELECT count(*) FROM (\n{query}\n) AS violation")).await?;
            let violations = counted.integer(0, 0).and_then(|count| u64::try_from(count).ok());
            let rows =
                session.batch(&format!("SELECT * FROM (\n{query}\n) AS violation LIMIT {EXAMPLES}")).await?;
            let examples = (0..rows.len()).map(|row| format!("({})", rows.row_text(row))).collect();
            Ok(found(violations.ok_or_else(uncounted)?, examples))
        }
    }
}

#[cfg(test)]
mod tests;
