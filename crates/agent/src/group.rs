//! The agents of one load, as whoever commands them sees them: what each has said, whether it lives, how its clock runs.
//!
//! Owns reading and writing lines, and when an agent counts as lost. What is made of what they say is `relay`'s.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{self, BufRead, Read, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use crate::moments::now_ns;
use crate::offset::{Comparison, Offset, RoundTrip, best};
use crate::teller::Teller;
use crate::words::{LONGEST_LINE_BYTES, News, Order, Refusal};

/// How long an agent may take to say its first word: its machine may have to be reached first.
const GREETING: Duration = Duration::from_secs(30);
/// An agent that says nothing for so long is lost. It says that it lives ten times a second.
const SILENCE: Duration = Duration::from_secs(15);
/// How often it is looked whether somebody is.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// A pause of our own that is no silence of theirs.
const OWN_PAUSE: Duration = Duration::from_millis(500);
/// Round trips that a comparison of clocks is made from.
const ROUND_TRIPS: usize = 40;
/// The longest part of a line that is nobody's news which is repeated to people.
const SHOWN_CHARACTERS: usize = 200;

/// The way to an agent.
pub struct Link {
    /// The agent's name.
    pub name: String,
    /// The machine, as its way names it.
    pub host: String,
    /// Where orders go.
    pub input: Box<dyn Write + Send>,
    /// Where news come from.
    pub output: Box<dyn Read + Send>,
    /// What the way itself said, once it has ended.
    pub last_words: Box<dyn FnMut() -> String + Send>,
}

/// Why agents cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GroupError {
    /// One did not get ready.
    #[error("agent {agent} ({host}): {why}")]
    NotReady {
        agent: String,
        /// Its machine.
        host: String,
        /// What it or its channel said, a clause without a full stop: `it said nothing for 10 s`.
        why: String,
    },
    /// One is of another version, whose words may mean something else.
    #[error(
        "agent {agent} ({host}) is holdfast {theirs}, and this is {ours}; install the same version there"
    )]
    Version {
        agent: String,
        /// Its machine.
        host: String,
        /// Its version.
        theirs: String,
        ours: String,
    },
}

/// How an agent's load ended.
#[derive(Debug, Clone)]
pub(crate) struct LoadEnded {
    pub(crate) why: Option<String>,
    pub(crate) recorded: bool,
    pub(crate) cpu: Duration,
}

/// One agent.
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) host: String,
    orders: Option<Teller>,
    last_words: Box<dyn FnMut() -> String + Send>,
    pub(crate) version: Option<String>,
    pub(crate) connected: usize,
    pub(crate) refusal: Option<Refusal>,
    pub(crate) late: Duration,
    pub(crate) clock: Comparison,
    pub(crate) ended: Option<LoadEnded>,
    /// How it showed that it is lost.
    pub(crate) lost: Option<String>,
    heard: Instant,
    asked: BTreeMap<u64, u64>,
    trips: Vec<RoundTrip>,
}

/// The agents of a load.
pub struct Group {
    pub(crate) members: Vec<Member>,
    events: Receiver<(usize, Event)>,
    /// What has come and was not taken in yet.
    waiting: VecDeque<(usize, Event)>,
    numbered: u64,
    listened: Instant,
    /// When it was looked whether each still lives.
    looked: Instant,
}

/// What came from an agent, with the moment at which it was there.
enum Event {
    News(u64, Box<News>),
    Gone(String),
}

/// What an agent said that is not about itself.
pub(crate) enum Said {
    /// A second of its load.
    Batch(Box<crate::batch_words::BatchWords>),
    /// It stood still, from and to on its clock.
    Stalled(u64, u64),
    /// It cannot do its load.
    Refused(String),
}

impl Group {
    /// Agents at the other ends of these ways, once each has said that it is ready.
    ///
    /// # Errors
    /// When one does not, or is of another version.
    pub fn greet(links: Vec<Link>, version: &str) -> Result<Group, GroupError> {
        let (say, events) = channel();
        let mut members = Vec::new();
        for (number, link) in links.into_iter().enumerate() {
            members.push(Member::new(number, link, &say).map_err(|(agent, host, error)| {
                GroupError::NotReady { agent, host, why: format!("no thread: {error}") }
            })?);
        }
        let (waiting, now) = (VecDeque::new(), Instant::now());
        let mut group = Group { members, events, waiting, numbered: 0, listened: now, looked: now };
        let deadline = Instant::now() + GREETING;
        while group.members.iter().any(|member| member.version.is_none() && member.lost.is_none())
            && Instant::now() < deadline
        {
            // Before it has a load, an agent says nothing else.
            let _ = group.listen(Duration::from_millis(50));
        }
        group.members.iter().try_for_each(|member| member.is_ready(version))?;
        Ok(group)
    }

    /// Takes in the next of what agents say, or waits so long in vain.
    pub(crate) fn listen(&mut self, wait: Duration) -> Option<(usize, Said)> {
        let event = match self.waiting.pop_front() {
            Some(event) => Ok(event),
            None => self.events.recv_timeout(wait),
        };
        let pause = self.listened.elapsed().saturating_sub(wait);
        self.listened = Instant::now();
        if pause > OWN_PAUSE {
            // We have stood still ourselves, and heard nobody.
            self.members.iter_mut().for_each(|member| member.heard += pause.min(member.heard.elapsed()));
        }
        let said = match event {
            Ok((number, event)) => {
                self.members.get_mut(number).and_then(|member| Some((number, member.take(event)?)))
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => None,
        };
        if self.looked.elapsed() > LOOK_EVERY {
            self.look();
        }
        said
    }

    /// Gives up who is silent, also while the others talk without a pause. Whose words wait to be taken in is not silent.
    fn look(&mut self) {
        self.looked = Instant::now();
        self.waiting.extend(self.events.try_iter());
        let talking: BTreeSet<usize> = self.waiting.iter().map(|(number, _)| *number).collect();
        let silent = self.members.iter_mut().enumerate().filter(|(number, _)| !talking.contains(number));
        silent.for_each(|(_, member)| member.look());
    }

    /// Tells one agent an order. One that cannot be told anything is found to be gone by what it no longer says.
    pub(crate) fn tell(&self, number: usize, order: &Order) {
        if let Some(member) = self.members.get(number) {
            member.tell(order);
        }
    }

    /// Tells all that are there.
    pub(crate) fn tell_all(&self, order: &Order) {
        self.members.iter().for_each(|member| member.tell(order));
    }

    /// Asks all for their clocks.
    pub(crate) fn ping(&mut self) {
        for member in &mut self.members {
            self.numbered += 1;
            member.ping(self.numbered);
        }
    }

    /// Gives an agent up, and ends it.
    pub(crate) fn give_up(&mut self, number: usize, why: &str) {
        if let Some(member) = self.members.get_mut(number) {
            member.give_up(why.to_owned());
        }
    }
}

impl Member {
    fn new(
        number: usize,
        link: Link,
        say: &Sender<(usize, Event)>,
    ) -> Result<Member, (String, String, io::Error)> {
        let Link { name, host, input, output, last_words } = link;
        let say = say.clone();
        let listen = move || listen(output, |event| say.send((number, event)).is_ok());
        let thread = std::thread::Builder::new().name(format!("agent {name}")).spawn(listen);
        let orders = match thread.and_then(|_| Teller::to(input)) {
            Ok(orders) => orders,
            Err(error) => return Err((name, host, error)),
        };
        Ok(Member {
            name,
            host,
            orders: Some(orders),
            last_words,
            version: None,
            connected: 0,
            refusal: None,
            late: Duration::ZERO,
            clock: Comparison::default(),
            ended: None,
            lost: None,
            heard: Instant::now(),
            asked: BTreeMap::new(),
            trips: Vec::new(),
        })
    }

    /// Whether it still does its load.
    pub(crate) fn is_at_work(&self) -> bool {
        self.ended.is_none() && self.lost.is_none()
    }

    fn is_ready(&self, version: &str) -> Result<(), GroupError> {
        let (agent, host) = (self.name.clone(), self.host.clone());
        match (&self.lost, &self.version) {
            (Some(why), _) => Err(GroupError::NotReady { agent, host, why: why.clone() }),
            (None, None) => {
                let why = format!("it said nothing for {} s", GREETING.as_secs());
                Err(GroupError::NotReady { agent, host, why })
            }
            (None, Some(theirs)) if theirs != version => {
                Err(GroupError::Version { agent, host, theirs: theirs.clone(), ours: version.to_owned() })
            }
            (None, Some(_)) => Ok(()),
        }
    }

    fn tell(&self, order: &Order) {
        if let Some(orders) = &self.orders {
            orders.tell(order);
        }
    }

    fn ping(&mut self, number: u64) {
        if self.lost.is_none() {
            self.asked.insert(number, now_ns());
            self.tell(&Order::Ping { number });
        }
    }

    /// Whether there were round trips since they were last looked at.
    pub(crate) fn is_compared(&self) -> bool {
        !self.trips.is_empty()
    }

    /// What the round trips since the last call show.
    pub(crate) fn take_offset(&mut self) -> Option<Offset> {
        let offset = best(&self.trips);
        self.trips.clear();
        offset
    }

    fn take(&mut self, event: Event) -> Option<Said> {
        let (at_ns, news) = match event {
            Event::News(at_ns, news) => (at_ns, *news),
            Event::Gone(why) => {
                let said = (self.last_words)();
                let said = said.trim();
                let why = if said.is_empty() { why } else { format!("{why}: {}", shown(said)) };
                self.give_up(why);
                return None;
            }
        };
        self.heard = Instant::now();
        match news {
            News::Ready { holdfast } => self.version = Some(holdfast),
            News::Pong { number, at_ns: theirs_ns } => {
                if let Some(sent_ns) = self.asked.remove(&number) {
                    self.trips.push(RoundTrip { sent_ns, theirs_ns, received_ns: at_ns });
                    let surplus = self.trips.len().saturating_sub(ROUND_TRIPS);
                    self.trips.drain(..surplus);
                }
            }
            News::Alive { connected, refusal } => {
                self.connected = connected;
                self.refusal = refusal;
            }
            News::Begun { late_ns } => self.late = Duration::from_nanos(late_ns),
            News::Ended { why, recorded, cpu_us } => {
                self.ended = Some(LoadEnded { why, recorded, cpu: Duration::from_micros(cpu_us) });
            }
            News::Batch(batch) => return Some(Said::Batch(batch)),
            News::Stalled { from_ns, to_ns } => return Some(Said::Stalled(from_ns, to_ns)),
            News::Refused { why } => return Some(Said::Refused(why)),
        }
        None
    }

    fn look(&mut self) {
        if self.lost.is_none() && self.version.is_some() && self.heard.elapsed() > SILENCE {
            self.give_up(format!("nothing was heard of it for {} s", SILENCE.as_secs()));
        }
    }

    /// It is gone, or is to go: the end of its input ends it.
    fn give_up(&mut self, why: String) {
        self.orders = None;
        self.lost.get_or_insert(why);
    }
}

/// Reads news to the end.
fn listen(output: impl Read, say: impl Fn(Event) -> bool) {
    let mut output = io::BufReader::new(output);
    loop {
        let mut line = Vec::new();
        let read = output.by_ref().take(LONGEST_LINE_BYTES).read_until(b'\n', &mut line);
        let at_ns = now_ns();
        let event = match read {
            Ok(0) => Event::Gone("the connection to it has ended".to_owned()),
            Err(error) => Event::Gone(format!("the connection to it broke: {error}")),
            Ok(_) => match serde_json::from_slice(&line) {
                Ok(news) => Event::News(at_ns, Box::new(news)),
                Err(_) => {
                    let line = String::from_utf8_lossy(&line);
                    Event::Gone(format!("invalid message from agent: {}", shown(line.trim())))
                }
            },
        };
        let is_last = matches!(event, Event::Gone(_));
        if !say(event) || is_last {
            return;
        }
    }
}

fn shown(text: &str) -> String {
    text.chars().take(SHOWN_CHARACTERS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One that has said that it is ready. What it sends goes nowhere: the test puts words into the group's own channel.
    fn member(name: &str, heard: Instant) -> Member {
        let link = Link {
            name: name.to_owned(),
            host: name.to_owned(),
            input: Box::new(io::sink()),
            output: Box::new(io::empty()),
            last_words: Box::new(String::new),
        };
        let member = Member::new(0, link, &channel().0).unwrap_or_else(|(_, _, error)| panic!("{error}"));
        Member { version: Some("1".to_owned()), heard, ..member }
    }

    #[test]
    fn a_silent_agent_is_lost_while_others_talk_without_a_pause_and_one_whose_words_wait_is_not() {
        let Some(long_ago) = Instant::now().checked_sub(SILENCE * 2) else {
            eprintln!("skipped: a_silent_agent_is_lost: the machine has been up for less than half a minute");
            return;
        };
        let (say, events) = channel();
        let alive = || Event::News(0, Box::new(News::Alive { connected: 1, refusal: None }));
        for number in [0, 0, 0, 1] {
            say.send((number, alive())).expect("heard");
        }
        let now = Instant::now();
        let members = vec![member("talks", now), member("waits", long_ago), member("mute", long_ago)];
        let waiting = VecDeque::new();
        let mut group = Group { members, events, waiting, numbered: 0, listened: now, looked: long_ago };
        assert!(group.listen(Duration::ZERO).is_none());
        let lost: Vec<bool> = group.members.iter().map(|member| member.lost.is_some()).collect();
        assert_eq!(lost, [false, false, true]);
        for _ in 0..3 {
            assert!(group.listen(Duration::ZERO).is_none());
        }
        assert!(group.members[1].heard > long_ago, "its words were taken in");
    }
}
