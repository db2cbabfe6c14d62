//! The places in which is measured: two joined by a plain veth pair, two joined by the fabric, one alone with its loopback;
//! and the measuring programs started in them. Lives inside the lab of the bench.

use std::io::{BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::{Context, ensure};
use fabric::{Fabric, Options, Policy, PortId, Rule};
use lab::attachment::{self, Attachment};
use lab::{Addresses, RoutingNamespace};

use super::INSTRUMENT_SUBCOMMAND;
use super::instrument::{Job, Seen};

/// A network namespace and the address in it that counts.
#[derive(Debug)]
pub struct Place {
    attachment: Attachment,
    /// Where it is reached.
    pub address: Ipv4Addr,
}

impl Place {
    /// A place with a TUN interface of this number.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn make(number: u16) -> anyhow::Result<Place> {
        let [high, low] = number.to_be_bytes();
        let address = Ipv4Addr::new(10, 1, high, low);
        let attachment =
            Attachment::make(Addresses::of(address)).with_context(|| format!("make place {number}"))?;
        Ok(Place { attachment, address })
    }

    /// Its network namespace.
    #[must_use]
    pub fn namespace(&self) -> &OwnedFd {
        &self.attachment.namespace
    }

    /// Joins its interface to the fabric.
    ///
    /// # Errors
    /// When the fabric refuses.
    pub fn join(&self, fabric: &Fabric) -> anyhow::Result<PortId> {
        let tun = self.attachment.tun.try_clone()?;
        Ok(fabric.attach(vec![self.address.to_string()], vec![self.address.into()], tun)?)
    }

    /// Does something on a thread inside it.
    ///
    /// # Errors
    /// When the place cannot be entered, and whatever `work` fails with.
    pub fn inside<T: Send>(&self, work: impl FnOnce() -> anyhow::Result<T> + Send) -> anyhow::Result<T> {
        attachment::on_own_thread(|| {
            attachment::enter(self.namespace())?;
            work()
        })?
    }

    /// Starts a measuring program inside it.
    ///
    /// # Errors
    /// When it does not start.
    pub fn start(&self, job: &Job) -> anyhow::Result<Instrument> {
        let job = serde_json::to_string(job)?;
        let mut command = Command::new("/proc/self/exe");
        command.arg(INSTRUMENT_SUBCOMMAND).arg(&job).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = self.inside(|| Ok(command.spawn()?))?;
        let output = BufReader::new(child.stdout.take().context("its output")?);
        Ok(Instrument { job, child, output })
    }

    /// Starts one that listens: itself, and where it listens.
    ///
    /// # Errors
    /// When it does not come to listen.
    pub fn listen(&self, job: &Job) -> anyhow::Result<(Instrument, u16)> {
        let mut instrument = self.start(job)?;
        let port = instrument.next()?.port.with_context(|| format!("{job:?} names no port"))?;
        Ok((instrument, port))
    }
}

/// A measuring program that runs. Ends when dropped.
#[derive(Debug)]
pub struct Instrument {
    job: String,
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Instrument {
    /// The next it has to say.
    ///
    /// # Errors
    /// When it says nothing more, or nothing that makes sense.
    pub fn next(&mut self) -> anyhow::Result<Seen> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        serde_json::from_str(&line).with_context(|| format!("{} said `{}`", self.job, line.trim_end()))
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// When it failed.
    pub fn finish(mut self) -> anyhow::Result<()> {
        let status = self.child.wait()?;
        ensure!(status.success(), "{}: {status}", self.job);
        Ok(())
    }
}

impl Drop for Instrument {
    fn drop(&mut self) {
        // One that has ended already is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Two places and how one reaches the other.
#[derive(Debug)]
pub struct Route<'a> {
    /// Where clients are.
    pub client: &'a Place,
    /// Where servers are.
    pub server: &'a Place,
    /// The address at which servers listen.
    pub address: IpAddr,
}

impl Route<'_> {
    /// Where a server with this port is reached.
    #[must_use]
    pub fn target(&self, port: u16) -> SocketAddr {
        SocketAddr::new(self.address, port)
    }
}

/// Joins two places by a veth pair of the same MTU: the address at which the second is reached.
///
/// # Errors
/// When `ip` is not there or is refused.
pub fn join_by_veth(one: &Place, two: &Place) -> anyhow::Result<Ipv4Addr> {
    let there = format!("/proc/{}/fd/{}", std::process::id(), two.namespace().as_raw_fd());
    one.inside(|| {
        ip(&["link", "add", "veth0", "type", "veth", "peer", "name", "veth0", "netns", &there])?;
        ip(&["address", "add", "192.168.7.1/24", "dev", "veth0"])?;
        ip(&["link", "set", "veth0", "up"])
    })?;
    two.inside(|| {
        ip(&["address", "add", "192.168.7.2/24", "dev", "veth0"])?;
        ip(&["link", "set", "veth0", "up"])
    })?;
    Ok(Ipv4Addr::new(192, 168, 7, 2))
}

/// Joins two places by the kernel's own path, both ways, as the lab does where nothing is asked of a pair.
///
/// # Errors
/// When the kernel refuses.
pub fn join_by_kernel_path(routing: &RoutingNamespace, [one, two]: &[Place; 2]) -> anyhow::Result<()> {
    let end = |place: &Place| routing.join(place.namespace(), Addresses::of(place.address));
    end(one)?.open(&[two.address.into()])?;
    end(two)?.open(&[one.address.into()])?;
    Ok(())
}

fn ip(arguments: &[&str]) -> anyhow::Result<()> {
    let output = Command::new("ip").args(arguments).output().context("start ip, of the package iproute2")?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "ip {}: {}", arguments.join(" "), error.trim_end());
    Ok(())
}

/// A fabric with these places on it, under one rule.
///
/// # Errors
/// When the fabric refuses.
pub fn fabric_over(places: &[&Place], options: Options, rule: Rule) -> anyhow::Result<Fabric> {
    let fabric = Fabric::start_with(options)?;
    for place in places {
        place.join(&fabric)?;
    }
    fabric.set_policy(Policy { rules: vec![rule], ..Policy::default() })?;
    Ok(fabric)
}
