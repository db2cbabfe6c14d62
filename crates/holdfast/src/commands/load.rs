//! `holdfast load`: the generator alone, against a database that is already there.

mod password;
mod url;

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use history::Verdict;
use load::{Arrival, LoadPlan, Step, ThinkTime};
use run::{Standalone, StandaloneEnd, StandaloneNews};
use scenario_files::ScriptFiles;

use crate::arguments::{ArrivalWord, LoadOptions};
use crate::exit::Exit;
use crate::{complained, printed};
use url::DatabaseUrl;

/// How long a client tries one node before it tries the next.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Seconds between two lines of figures where there is no terminal.
const PLAIN_INTERVAL_S: u64 = 5;

/// Runs a load alone.
pub fn load(options: LoadOptions) -> Result<Exit, Exit> {
    let database = url::parse(&options.url).map_err(Exit::wrong)?;
    let json = options.json;
    let asked = asked(options, database)?;
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        // The second one ends the process at once: there is nothing to be put in order but files that are whole anyway.
        let code = i32::from(Verdict::Unknown.exit_code());
        signal_hook::flag::register_conditional_shutdown(signal, code, Arc::clone(&interrupted))
            .map_err(Exit::failed)?;
        signal_hook::flag::register(signal, Arc::clone(&interrupted)).map_err(Exit::failed)?;
    }
    let end = run::run_alone(&asked, &|| interrupted.load(Ordering::Relaxed), &|told| tell(&told, json));
    let end = end.map_err(Exit::failed)?;
    conclude(&end, json)
}

fn asked(options: LoadOptions, database: DatabaseUrl) -> Result<Standalone, Exit> {
    let mut given: BTreeMap<String, String> = options.option.into_iter().collect();
    let files = scripts(&options.workload, &options.file, &mut given)?;
    let configured = workload::configured(&options.workload, &given);
    let workload = configured.map_err(|error| Exit::wrong(files.name_file_in(error)))?;
    if let Some(why) = database.protocol.understands().why_not(&options.workload) {
        let workload = &options.workload;
        return Err(Exit::wrong(anyhow::anyhow!(
            "the workload `{workload}` {why} (--url names the database)"
        )));
    }
    let endpoints = url::resolve(&database.hosts).map_err(Exit::wrong)?;
    let environment = match database.protocol.follows_libpq() {
        true => password::Environment::of_this_process(),
        // What the environment has is for the servers that libpq speaks to, and is not shown to others.
        false => password::Environment::default(),
    };
    let found = password::find(&database, &endpoints, options.password_file.as_deref(), environment);
    let found = found.map_err(Exit::wrong)?;
    for warning in &found.warnings {
        complained!("warning: {warning}");
    }
    let encryption = database.ssl.encryption(std::env::home_dir().as_deref()).map_err(Exit::wrong)?;
    let plan = LoadPlan {
        name: options.workload,
        workload,
        steps: vec![Step { from_s: 0.0, clients: options.clients, rate_per_s: options.rate }],
        arrival: match options.arrival {
            ArrivalWord::Constant => Arrival::Constant,
            ArrivalWord::Poisson => Arrival::Poisson,
        },
        part: load::Part::default(),
        think_time: options.think_time.map_or(ThinkTime::None, ThinkTime::Constant),
        first_client: 0,
        keeps_history: !options.no_history,
        scale: options.scale,
        protocol: database.protocol,
        reads: load::Reads::Leader,
        wait: None,
        spreads: false,
        program: None,
        consistency: load::Consistency::default(),
        seed: options.seed,
        endpoints,
        database: database.name,
        user: database.user,
        password: found.password,
        encryption,
        timeout: options.timeout,
        connect_timeout: CONNECT_TIMEOUT,
        defects: load::Defects::default(),
    };
    Ok(Standalone {
        plan,
        options: given,
        warm_up: options.warm_up.unwrap_or_default(),
        length: options.length,
        makes_tables: options.prepare,
        out: options.out,
        version: env!("CARGO_PKG_VERSION"),
    })
}

/// Adds the scripts of files to the workload's options, after those that stand there already.
fn scripts(
    workload: &str,
    files: &[(PathBuf, u32)],
    options: &mut BTreeMap<String, String>,
) -> Result<ScriptFiles, Exit> {
    if !files.is_empty() && workload != "script" {
        return Err(Exit::wrong(anyhow::anyhow!(
            "--file belongs to the workload `script`; write `--workload script`, or leave it out"
        )));
    }
    let is_script = |place: usize| options.keys().any(|name| name.starts_with(&format!("scripts.{place}.")));
    let first = (0..).find(|place| !is_script(*place)).unwrap_or_default();
    for (place, (path, weight)) in (first..).zip(files) {
        // Absolute: the user who typed it means it, wherever it leads.
        let path = std::path::absolute(path).map_err(Exit::wrong)?;
        options.insert(format!("scripts.{place}.file"), path.to_string_lossy().into_owned());
        options.insert(format!("scripts.{place}.weight"), weight.to_string());
    }
    scenario_files::read_scripts(options, Path::new("")).map_err(Exit::wrong)
}

fn tell(told: &StandaloneNews<'_>, json: bool) {
    let line = match told {
        StandaloneNews::Step(step) => format!("         {step}"),
        StandaloneNews::Directory(path) => format!("         run directory {}", path.display()),
        StandaloneNews::Second { second, of_s, transactions, errors, us_p99 } => {
            if !std::io::stderr().is_terminal() && (second + 1) % PLAIN_INTERVAL_S != 0 {
                return;
            }
            let failed = if *errors > 0 { format!(", {errors} errors") } else { String::new() };
            let p99_ms = *us_p99 as f64 / 1e3;
            format!("{:7} s of {of_s}: {transactions}/s, p99 {p99_ms:.2} ms{failed}", second + 1)
        }
    };
    if json {
        complained!("{line}");
    } else {
        printed!("{line}");
    }
}

fn conclude(end: &StandaloneEnd, json: bool) -> Result<Exit, Exit> {
    // The page is the report's business: without it everything measured is still in the directory.
    if let Err(error) = report::write(&end.directory) {
        complained!("no report: {error}");
    }
    let summary = report::text(&end.result);
    if json {
        complained!("{}", summary.trim_end());
        printed!("{}", serde_json::to_string_pretty(&end.result).map_err(Exit::failed)?);
    } else {
        printed!("{}", summary.trim_end());
        printed!("{}", end.directory.display());
    }
    Ok(Exit::Verdict(end.result.verdict))
}
