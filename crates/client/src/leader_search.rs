//! Where the leader is, as all clients of a load know it together, and how many of them connect at once.
//!
//! A database that starts a process for every connection does nothing else when a thousand clients connect at once: no
//! attempt ends in time, each is tried again, and what was done for it is lost. So attempts in flight are bounded. A leader
//! that is known is asked by everybody; one that is not is searched by one client for all. What one learns, the others know.
//!
//! Owns the order, the number and the time limits of attempts. What an attempt is, is each protocol's ([`Ask`]); waiting
//! after a failure is the caller's.

mod answer;
mod node;

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use history::{ErrorClass, TOO_MANY_CONNECTIONS};
use rand::{Rng, RngExt};
use tokio::sync::{Semaphore, SemaphorePermit, watch};

use self::answer::{Answer, Step};
use self::node::{HEAD_START, Node};
use crate::backoff::Backoff;
use crate::connection::SessionError;
use crate::endpoint::Endpoint;
use crate::frames::failure;
use crate::reactor::{Sleep, sleep, sleep_until, timeout};
use crate::session::{ConnectError, Connected, Connector, FailedAttempt, Session};

/// The most attempts of a load in flight at one node, one more while the leader is searched. Enough to connect hundreds of
/// clients a second over a round trip of 100 ms; few enough that two processors start their sessions within a second.
pub const IN_FLIGHT_AT_A_NODE: usize = 64;
/// The most attempts of a load in flight.
pub const IN_FLIGHT: usize = 128;
/// The most attempts of a load in flight at nodes that clients go back to, beside the others.
const FAILING_BACK: usize = 4;
/// The longest pause between two rounds of a search: how late a new leader may be found.
const LONGEST_PAUSE: Duration = Duration::from_millis(100);
/// A time limit doubles with each attempt in a row that met it, so many times.
const MOST_DOUBLINGS: u32 = 3;
/// One attempt at one node.
pub trait Ask: 'static {
    /// What the attempt opens.
    type Opened: 'static;

    /// Whether the protocol's drivers keep a connection to each node that is up, and so go back to one that returns.
    const FAILS_BACK: bool = false;

    /// What was opened, as those who connect have it.
    fn session(opened: Self::Opened) -> Session;

    /// Opens a session with a node and asks it whether it leads. Whoever calls sets the time limit.
    fn ask(&self, endpoint: &Endpoint) -> impl Future<Output = Result<(Self::Opened, bool), SessionError>>;
}

/// The search that all clients of a load share, so that what one learns of the leader helps the others.
pub struct LeaderSearch<A: Ask> {
    search: Rc<Search<A>>,
    /// Whether clients are spread over all that take writes.
    is_spread: bool,
}

struct Search<A: Ask> {
    asked: A,
    nodes: Vec<Node>,
    first_limit: Duration,
    in_flight: Semaphore,
    failing_back: Semaphore,
    /// Whose turn it is where clients are spread over all nodes.
    given_out: Cell<usize>,
    /// The known leader, by its place in `nodes`.
    leader: watch::Sender<Option<usize>>,
    /// Who searches: one at a time.
    turn: Semaphore,
    scouting: RefCell<Scouting<A::Opened>>,
}

/// What a search leaves to the next: attempts at nodes that are silent go on, whoever searches.
struct Scouting<S> {
    attempts: Vec<Option<Attempt<S>>>,
    backoff: Backoff,
    not_before: Instant,
}

struct Attempt<S> {
    begun: Instant,
    future: Answering<S>,
}

type Answering<S> = Pin<Box<dyn Future<Output = Answer<S>>>>;

impl<A: Ask> Connector for LeaderSearch<A> {
    fn connect<'a>(
        &'a self,
        rng: &'a mut dyn Rng,
    ) -> Pin<Box<dyn Future<Output = Result<Connected, ConnectError>> + 'a>> {
        Box::pin(async move {
            let found = if self.is_spread { self.in_turn(rng).await } else { self.to_leader(rng).await };
            let (opened, node, failed_attempts) = found?;
            Ok(Connected { session: A::session(opened), node, failed_attempts })
        })
    }

    fn fails_back(&self) -> bool {
        self.is_spread && A::FAILS_BACK
    }

    fn connect_to<'a>(&'a self, node: &'a str) -> Pin<Box<dyn Future<Output = Option<Connected>> + 'a>> {
        Box::pin(async move {
            let search = &self.search;
            let _permit = search.failing_back.try_acquire().ok()?;
            let endpoint = self.endpoints().find(|endpoint| endpoint.node == node)?;
            let asked = timeout(search.first_limit, search.asked.ask(endpoint)).await;
            let (opened, takes_writes) = asked.ok()?.ok()?;
            let connected =
                Connected { session: A::session(opened), node: node.to_owned(), failed_attempts: Vec::new() };
            takes_writes.then_some(connected)
        })
    }
}

impl<A: Ask> LeaderSearch<A> {
    /// A search that knows no leader yet. `first_limit` is the time limit of an attempt; it grows to eight times that while
    /// a node meets it again and again.
    pub(crate) fn asking(asked: A, endpoints: Vec<Endpoint>, first_limit: Duration) -> Self {
        let node = |endpoint| Node {
            endpoint,
            in_flight: Semaphore::new(IN_FLIGHT_AT_A_NODE),
            timeouts: Cell::new(0),
            answered: Cell::new(None),
        };
        let attempts = endpoints.iter().map(|_| None).collect();
        let backoff = Backoff::up_to(LONGEST_PAUSE);
        let search = Rc::new(Search {
            asked,
            nodes: endpoints.into_iter().map(node).collect(),
            first_limit,
            in_flight: Semaphore::new(IN_FLIGHT),
            failing_back: Semaphore::new(FAILING_BACK),
            given_out: Cell::new(0),
            leader: watch::Sender::new(None),
            turn: Semaphore::new(1),
            scouting: RefCell::new(Scouting { attempts, backoff, not_before: Instant::now() }),
        });
        Self { search, is_spread: false }
    }

    /// The same to all nodes that take writes, client by client in turn.
    pub(crate) fn spread_out(mut self) -> Self {
        self.is_spread = true;
        self
    }

    pub(crate) fn endpoints(&self) -> impl ExactSizeIterator<Item = &Endpoint> {
        self.search.nodes.iter().map(|node| &node.endpoint)
    }

    /// A session with the leader, its name, and what failed on the way. It fails when the known leader is none any more, or
    /// after a round over all nodes without one.
    pub(crate) async fn to_leader(
        &self,
        rng: &mut dyn Rng,
    ) -> Result<(A::Opened, String, Vec<FailedAttempt>), ConnectError> {
        let mut news = self.search.leader.subscribe();
        let mut failed = ConnectError::default();
        let mut has_asked_leader = false;
        loop {
            let known = *news.borrow_and_update();
            let step = match known {
                Some(index) => self.ask_leader(index, &mut news, rng, &mut failed).await,
                None => {
                    tokio::select! {
                        biased;
                        () = changes(&mut news, |leader| leader.is_some()) => Step::Anew,
                        step = self.search(None, rng, &mut failed) => step,
                    }
                }
            };
            match step {
                Step::Found(session, index) => {
                    let node = self.search.name(index);
                    return Ok((session, node, failed.failed_attempts));
                }
                // Its successor, if there is one, can be found at once.
                Step::Failed if known.is_some() && !has_asked_leader => has_asked_leader = true,
                Step::Failed | Step::Full => return Err(failed),
                Step::Anew => {}
            }
        }
    }

    /// A session with one of the nodes that take writes, where any may: each client begins with the next, and goes on to
    /// the others where that one takes none. Nodes that were silent when they were last asked come last.
    async fn in_turn(
        &self,
        rng: &mut dyn Rng,
    ) -> Result<(A::Opened, String, Vec<FailedAttempt>), ConnectError> {
        let nodes = &self.search.nodes;
        let turn = self.search.given_out.replace(self.search.given_out.get().wrapping_add(1));
        let mut order: Vec<usize> = (0..nodes.len()).map(|place| (turn + place) % nodes.len()).collect();
        order.sort_by_key(|index| nodes.get(*index).is_some_and(|node| node.timeouts.get() > 0));
        let mut failed = ConnectError::default();
        for index in order {
            match self.ask_node(index, rng).await {
                Ok((session, true)) => return Ok((session, self.search.name(index), failed.failed_attempts)),
                Ok((_, false)) => failed.read_only_nodes.push(self.search.name(index)),
                Err(error) => {
                    failed.failed_attempts.push(FailedAttempt { node: self.search.name(index), error })
                }
            }
        }
        Err(failed)
    }

    /// A session with the node at this place, whether it leads or not.
    pub(crate) async fn ask_node(
        &self,
        index: usize,
        rng: &mut dyn Rng,
    ) -> Result<(A::Opened, bool), SessionError> {
        let Some(node) = self.search.nodes.get(index) else {
            return Err(failure(ErrorClass::Other, true, "there is no such node".to_owned()));
        };
        let _permits = (permit(&node.in_flight).await, permit(&self.search.in_flight).await);
        match self.attempt(index, rng).await {
            Answer::Leads(session) => Ok((session, true)),
            Answer::Follows(session) => Ok((session, false)),
            Answer::Failed(error) => Err(error),
        }
    }

    /// Asks the known leader. While it is silent it is searched elsewhere as well.
    async fn ask_leader(
        &self,
        index: usize,
        news: &mut watch::Receiver<Option<usize>>,
        rng: &mut dyn Rng,
        failed: &mut ConnectError,
    ) -> Step<A::Opened> {
        let Some(node) = self.search.nodes.get(index) else { return Step::Failed };
        let permits = async { (permit(&node.in_flight).await, permit(&self.search.in_flight).await) };
        let _permits = tokio::select! {
            biased;
            () = changes(news, |leader| leader != Some(index)) => return Step::Anew,
            permits = permits => permits,
        };
        let mut attempt = pin!(self.attempt(index, rng));
        let begun = Instant::now();
        loop {
            let searched = async {
                node.silence_since(begun).await;
                self.search(Some(index), rng, failed).await
            };
            let answer = tokio::select! {
                biased;
                answer = &mut attempt => answer,
                () = changes(news, |leader| leader.is_some_and(|leader| leader != index)) => return Step::Anew,
                step = searched => match step {
                    Step::Found(..) | Step::Anew => return step,
                    // A round without a leader: the attempt may still come to something.
                    Step::Failed | Step::Full => continue,
                },
            };
            let step = self.search.judge(index, answer, failed);
            if self.search.turn.available_permits() > 0 {
                self.search.give_up_if_leader_answers();
            }
            return step;
        }
    }

    /// One round over all nodes, for all clients: when this client's turn comes and nobody has found a leader other than the
    /// suspect meanwhile.
    async fn search(
        &self,
        suspect: Option<usize>,
        rng: &mut dyn Rng,
        failed: &mut ConnectError,
    ) -> Step<A::Opened> {
        let _turn = Turn { search: &self.search, _permit: permit(&self.search.turn).await };
        let not_before = self.search.scouting.borrow().not_before;
        if not_before > Instant::now() {
            sleep_until(not_before).await;
        }
        if self.search.leader.borrow().is_some_and(|leader| Some(leader) != suspect) {
            return Step::Anew;
        }
        if suspect.and_then(|suspect| self.search.nodes.get(suspect)).is_some_and(Node::has_just_answered) {
            return Step::Failed;
        }
        self.begin_round(rng);
        let mut round = Round { one_ended: false, alarm: None };
        let step = poll_fn(|context| self.search.poll_round(&mut round, failed, context)).await;
        let mut scouting = self.search.scouting.borrow_mut();
        if matches!(step, Step::Found(..)) {
            scouting.backoff.reset();
        }
        scouting.not_before = Instant::now() + scouting.backoff.next(rng);
        step
    }

    /// Begins an attempt at every node that is not being asked already.
    fn begin_round(&self, rng: &mut dyn Rng) {
        let mut scouting = self.search.scouting.borrow_mut();
        let begun = Instant::now();
        for (index, attempt) in scouting.attempts.iter_mut().enumerate() {
            if attempt.is_none() {
                let future = Box::pin(self.attempt(index, rng));
                *attempt = Some(Attempt { begun, future });
            }
        }
    }

    /// One attempt at one node within its time limit.
    fn attempt(
        &self,
        index: usize,
        rng: &mut dyn Rng,
    ) -> impl Future<Output = Answer<A::Opened>> + 'static + use<A> {
        let search = Rc::clone(&self.search);
        // Drawn now: what becomes of the attempt must not shift what is drawn after it.
        let limit = search.limit(index, rng);
        async move {
            let Some(node) = search.nodes.get(index) else {
                return Answer::Failed(failure(ErrorClass::Other, true, "there is no such node".to_owned()));
            };
            match timeout(limit, search.asked.ask(&node.endpoint)).await {
                Ok(answer) => {
                    node.timeouts.set(0);
                    node.answered.set(Some(Instant::now()));
                    match answer {
                        Ok((session, true)) => Answer::Leads(session),
                        Ok((session, false)) => Answer::Follows(session),
                        Err(error) => Answer::Failed(error),
                    }
                }
                Err(_) => {
                    node.timeouts.set(node.timeouts.get().saturating_add(1));
                    let (address, limit_ms) = (&node.endpoint.address, limit.as_millis());
                    let message = format!("{address}: no connection within {limit_ms} ms");
                    Answer::Failed(failure(ErrorClass::Connection, true, message))
                }
            }
        }
    }
}

impl<A: Ask> Drop for LeaderSearch<A> {
    fn drop(&mut self) {
        // Attempts hold the search that holds them.
        let attempts = std::mem::take(&mut self.search.scouting.borrow_mut().attempts);
        drop(attempts);
    }
}

/// A round of a search under way.
struct Round {
    one_ended: bool,
    /// When the last of its attempts has had its head start.
    alarm: Option<Pin<Box<Sleep>>>,
}

/// A client's turn to search. However the search ends, it leaves no attempt that nobody will carry on.
struct Turn<'a, A: Ask> {
    search: &'a Search<A>,
    _permit: Option<SemaphorePermit<'a>>,
}

impl<A: Ask> Drop for Turn<'_, A> {
    fn drop(&mut self) {
        self.search.give_up_if_leader_answers();
    }
}

impl<A: Ask> Search<A> {
    /// Ends the attempts that searches have left, where the leader answers: nobody will search, and each would hold one of a
    /// server's sessions for as long as the load lives. Not to be called while somebody searches.
    fn give_up_if_leader_answers(&self) {
        let leader = self.leader.borrow().and_then(|index| self.nodes.get(index));
        if leader.is_some_and(Node::has_just_answered) {
            let left: Vec<_> = self.scouting.borrow_mut().attempts.iter_mut().map(Option::take).collect();
            drop(left);
        }
    }

    fn name(&self, index: usize) -> String {
        self.nodes.get(index).map(|node| node.endpoint.node.clone()).unwrap_or_default()
    }

    /// How long the next attempt at a node may take: doubled for each in a row that met its limit, and up to a quarter more,
    /// so that attempts that began together do not end together.
    fn limit(&self, index: usize, rng: &mut dyn Rng) -> Duration {
        let timeouts = self.nodes.get(index).map_or(0, |node| node.timeouts.get());
        let step = self.first_limit.saturating_mul(1 << timeouts.min(MOST_DOUBLINGS));
        step.saturating_add(Duration::from_secs_f64(step.as_secs_f64() * rng.random_range(0.0..=0.25)))
    }

    /// What an answer says of the leader, for all clients, and of this client's way to it.
    fn judge(&self, index: usize, answer: Answer<A::Opened>, failed: &mut ConnectError) -> Step<A::Opened> {
        match answer {
            Answer::Leads(session) => {
                self.leader.send_if_modified(|leader| leader.replace(index) != Some(index));
                return Step::Found(session, index);
            }
            Answer::Follows(_) => failed.read_only_nodes.push(self.name(index)),
            Answer::Failed(error) => {
                let is_full = error.code.as_deref().is_some_and(|code| TOO_MANY_CONNECTIONS.contains(&code));
                failed.failed_attempts.push(FailedAttempt { node: self.name(index), error });
                if is_full {
                    // It leads all the same; others have sessions with it.
                    return Step::Full;
                }
            }
        }
        self.leader.send_if_modified(|leader| {
            let was_known = *leader == Some(index);
            if was_known {
                *leader = None;
            }
            was_known
        });
        Step::Failed
    }

    /// Carries the attempts of a round on until one finds the leader or all have ended. Silent nodes do not hold it up: once
    /// another has answered, it ends when they have had their head start, and their attempts go on in the next.
    fn poll_round(
        &self,
        round: &mut Round,
        failed: &mut ConnectError,
        context: &mut Context<'_>,
    ) -> Poll<Step<A::Opened>> {
        let mut scouting = self.scouting.borrow_mut();
        let mut last_begun = None;
        for (index, slot) in scouting.attempts.iter_mut().enumerate() {
            let Some(attempt) = slot else { continue };
            match attempt.future.as_mut().poll(context) {
                Poll::Pending => last_begun = last_begun.max(Some(attempt.begun)),
                Poll::Ready(answer) => {
                    *slot = None;
                    round.one_ended = true;
                    if let Step::Found(session, index) = self.judge(index, answer, failed) {
                        return Poll::Ready(Step::Found(session, index));
                    }
                }
            }
        }
        let Some(last_begun) = last_begun else { return Poll::Ready(Step::Failed) };
        if !round.one_ended {
            return Poll::Pending;
        }
        let alarm = round
            .alarm
            .get_or_insert_with(|| Box::pin(sleep(HEAD_START.saturating_sub(last_begun.elapsed()))));
        alarm.as_mut().poll(context).map(|()| Step::Failed)
    }
}

/// Waits for a place; places are never taken away.
async fn permit(places: &Semaphore) -> Option<SemaphorePermit<'_>> {
    places.acquire().await.ok()
}

/// Waits until what is known of the leader is like this.
async fn changes(news: &mut watch::Receiver<Option<usize>>, is_so: impl Fn(Option<usize>) -> bool) {
    // The sender lives as long as the search.
    let _ = news.wait_for(|leader| is_so(*leader)).await;
}
