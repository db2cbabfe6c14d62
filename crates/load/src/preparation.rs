//! What happens before and after a load, from the clients' place and through the leader: tables made and loaded, and
//! the final read.

use std::time::{Duration, Instant};

use client::reactor;
use history::{Action, ErrorClass, Operation, Outcome};
use workload::TableSetup;

use crate::clock::Clock;
use crate::generator::message_of;
use crate::plan::{LoadError, LoadPlan, OnThread};
use client::{Backoff, ConnectError, Connected, Connector, Dialect, Session, SessionError};

/// How long one statement of the preparation may take: loading and indexing at a large scale takes minutes.
const PREPARE_STATEMENT: Duration = Duration::from_secs(600);

/// How long a leader is looked for, and lost connections are put up with, before the preparation is given up.
const PREPARE_PATIENCE: Duration = Duration::from_secs(60);

/// How long one final read may take that is answered page by page.
const LONGEST_FINAL_READ: Duration = Duration::from_secs(3600);

/// The stream of chance (see `LoadPlan::chance`) used here.
const PREPARATION: u64 = 2;

/// Creates and loads the workload's tables. Blocks until done; `progress` takes word of how far it is.
///
/// # Errors
/// When the plan cannot be carried out, no leader is found within a minute, or the database refuses.
pub fn prepare(
    plan: &LoadPlan,
    on_thread: OnThread,
    progress: &(dyn Fn(String) + Sync),
) -> Result<(), LoadError> {
    in_place(plan, on_thread, |plan| async move {
        let started = Instant::now();
        let mut leader = Leader::new(plan, PREPARE_STATEMENT);
        loop {
            let failure = match leader.connect().await {
                Ok((mut session, _)) => match make_tables(plan, &leader, &mut session, progress).await {
                    Ok(()) => return Ok(()),
                    Err(error) => Failure::of(&error),
                },
                Err(failure) => failure,
            };
            let failure = leader.connector.failure().map_or(failure, Failure::for_good);
            if !failure.may_pass || started.elapsed() > PREPARE_PATIENCE {
                return Err(gave_up(plan, "preparation", failure.why));
            }
            leader.pause().await;
        }
    })
}

/// The version the database's leader says it is.
///
/// # Errors
/// When the plan cannot be carried out, or no leader answers within its connect timeout, tried a few times.
pub fn server_version(plan: &LoadPlan, on_thread: OnThread) -> Result<String, LoadError> {
    const TRIES: u32 = 5;
    in_place(plan, on_thread, |plan| async move {
        let mut leader = Leader::new(plan, plan.connect_timeout);
        let mut last_error = String::new();
        for _ in 0..TRIES {
            match leader.connect().await {
                Ok((mut session, _)) => match version(&mut session).await {
                    Ok(rows) => return Ok(rows.text(0, 0).unwrap_or("unknown").to_owned()),
                    Err(error) => last_error = error.to_string(),
                },
                Err(failure) => last_error = failure.why,
            }
            leader.pause().await;
        }
        Err(gave_up(plan, "reaching the database", last_error))
    })
}

/// The node at which clients find the leader now; one of them, where each takes writes. Tries again for as long as `within`.
///
/// # Errors
/// When the plan cannot be carried out, or none was found in the time.
pub fn leader(plan: &LoadPlan, on_thread: OnThread, within: Duration) -> Result<String, LoadError> {
    in_place(plan, on_thread, |plan| async move {
        let mut last_error = "no attempt ended".to_owned();
        let found = async {
            let mut leader = Leader::new(plan, plan.connect_timeout);
            loop {
                match leader.connect().await {
                    Ok((_, node)) => return node,
                    Err(failure) => last_error = failure.why,
                }
                leader.pause().await;
            }
        };
        match reactor::timeout(within, found).await {
            Ok(node) => Ok(node),
            Err(_) => Err(gave_up(plan, "looking for the leader", last_error)),
        }
    })
}

/// Reads the database's final state as the workload's checks need it. Attempts begin for as long as `within`, and each answer is
/// waited for as long. A read whose pages come goes on for up to an hour. Blocks.
///
/// # Errors
/// When the plan cannot be carried out, or no read came through.
pub fn final_read(
    plan: &LoadPlan,
    clock: &Clock,
    on_thread: OnThread,
    within: Duration,
) -> Result<Vec<Operation>, LoadError> {
    in_place(plan, on_thread, |plan| async move {
        let mut last_error = "no attempt ended".to_owned();
        let mut leader = Leader::new(plan, within);
        let begun = Instant::now();
        while let Some(left) = within.checked_sub(begun.elapsed()) {
            let invoked = Instant::now();
            match reactor::timeout(left, leader.connect()).await {
                Ok(Ok((mut session, node))) => match read_the_end(plan, &mut session).await {
                    Ok(actions) => return Ok(operations(plan, clock, invoked, &node, actions)),
                    Err(error) => last_error = error.to_string(),
                },
                Ok(Err(failure)) => last_error = failure.why,
                Err(_) => break,
            }
            if leader.connector.failure().is_some() {
                // Another read may have a better one.
                leader = Leader::new(plan, within);
            }
            leader.pause().await;
        }
        Err(gave_up(plan, "the final read", last_error))
    })
}

/// What the workload reads in the end, from a node that has caught up.
async fn read_the_end(plan: &LoadPlan, session: &mut Session) -> Result<Vec<Action>, SessionError> {
    let read = async {
        catch_up(session).await?;
        plan.workload.final_read(session).await
    };
    let too_long = |_| {
        Err(SessionError {
            class: ErrorClass::Timeout,
            definite: true,
            message: format!("not all was read within {} s", LONGEST_FINAL_READ.as_secs()),
            code: None,
        })
    };
    reactor::timeout(LONGEST_FINAL_READ, read).await.unwrap_or_else(too_long)
}

/// Has a node of Galera answer only once it has carried out all that its group had certified: a node acknowledges
/// before the others have it (MariaDB documentation, "wsrep_sync_wait"). MySQL and TiDB do not know the word. A client program
/// may speak this dialect too.
async fn catch_up(session: &mut Session) -> Result<(), SessionError> {
    let Ok(session) = session.sql() else { return Ok(()) };
    if session.dialect() != Dialect::Mysql
        || session.batch("SHOW VARIABLES LIKE 'wsrep_sync_wait'").await?.is_empty()
    {
        return Ok(());
    }
    session.batch("SET SESSION wsrep_sync_wait = 1").await.map(drop)
}

async fn version(session: &mut Session) -> Result<client::Rows, SessionError> {
    let session = session.sql()?;
    let question = match session.dialect() {
        Dialect::Postgres => "SHOW server_version",
        Dialect::Mysql => "SELECT version()",
        Dialect::Cql => "SELECT release_version FROM system.local",
        // The standard knows of no question for it.
        Dialect::Standard => return Ok(client::Rows::default()),
    };
    session.batch(question).await
}

async fn make_tables(
    plan: &LoadPlan,
    leader: &Leader,
    session: &mut Session,
    progress: &(dyn Fn(String) + Sync),
) -> Result<(), SessionError> {
    for statement in plan.program.iter().flat_map(|program| &program.prepare) {
        session.sql()?.batch(statement).await?;
    }
    let mut setup =
        TableSetup { session, connector: leader.connector.as_ref(), scale: plan.scale, progress: &progress };
    plan.workload.setup(&mut setup).await
}

/// Runs `job` to its end on a thread of its own, put into its place first.
pub(crate) fn in_place<'a, T, J, F>(plan: &'a LoadPlan, on_thread: OnThread, job: J) -> Result<T, LoadError>
where
    T: Send,
    J: FnOnce(&'a LoadPlan) -> F + Send,
    F: Future<Output = Result<T, LoadError>>,
{
    plan.check()?;
    let failed = |what| move |source| LoadError::Thread { load: plan.name.clone(), what, source };
    std::thread::scope(|scope| {
        let body = move || {
            on_thread().map_err(failed("putting its thread into its place"))?;
            reactor::block_on(job(plan)).map_err(failed("starting its event loop"))?
        };
        let thread = std::thread::Builder::new()
            .name("load".to_owned())
            .spawn_scoped(scope, body)
            .map_err(failed("starting its thread"))?;
        thread.join().unwrap_or_else(|panic| {
            let message = message_of(panic.as_ref());
            Err(LoadError::Panicked { load: plan.name.clone(), message })
        })
    })
}

/// Looks for the leader, again and again.
pub(crate) struct Leader {
    connector: Box<dyn Connector>,
    rng: rand_chacha::ChaCha8Rng,
    backoff: Backoff,
}

impl Leader {
    pub(crate) fn new(plan: &LoadPlan, timeout: Duration) -> Self {
        let rng = plan.chance(plan.first_client, PREPARATION);
        Self { connector: plan.connector(timeout), rng, backoff: Backoff::default() }
    }

    pub(crate) async fn connect(&mut self) -> Result<(Session, String), Failure> {
        match self.connect_once().await {
            Ok(connected) => Ok((connected.session, connected.node)),
            Err(error) => Err(Failure { may_pass: true, why: error.to_string() }),
        }
    }

    pub(crate) async fn connect_once(&mut self) -> Result<Connected, ConnectError> {
        self.connector.connect(&mut self.rng).await
    }

    pub(crate) async fn pause(&mut self) {
        reactor::sleep(self.backoff.next(&mut self.rng)).await;
    }
}

/// A failed attempt, and whether another may go better.
pub(crate) struct Failure {
    may_pass: bool,
    why: String,
}

impl Failure {
    fn for_good(why: String) -> Self {
        Self { may_pass: false, why }
    }

    fn of(error: &SessionError) -> Self {
        Self { may_pass: error.class != ErrorClass::Other, why: error.to_string() }
    }
}

pub(crate) fn gave_up(plan: &LoadPlan, what: &'static str, last_error: String) -> LoadError {
    LoadError::GaveUp { load: plan.name.clone(), what, last_error }
}

/// The read as operations, each of a client of its own: they share one stretch of time, and a client has one operation at
/// a time. Their numbers are above those of any load's clients (see `LoadPlan::check`).
pub(crate) fn operations(
    plan: &LoadPlan,
    clock: &Clock,
    invoked: Instant,
    node: &str,
    actions: Vec<Action>,
) -> Vec<Operation> {
    let completed = Instant::now();
    // A read without a load has no clock to go by: it happened at no time after the (empty) rest.
    let seconds = |moment| clock.seconds_at(moment).unwrap_or(0.0);
    (workload::ledger::LARGEST_CLIENT + 1..)
        .zip(actions)
        .map(|(client, action)| Operation {
            load: plan.name.clone(),
            client,
            action,
            invoked_s: seconds(invoked),
            completed_s: seconds(completed),
            outcome: Outcome::Ok,
            error: None,
            node: Some(node.to_owned()),
        })
        .collect()
}
