//! An image in a registry: fetched part by part with curl, as whoever has not signed in.
//!
//! Owns what a registry is asked, and the token that it may want first. Whether a part is the one meant is `documents`'.
//! curl brings what else it takes: the machine's certificates and its proxies.
//!
//! Source: OCI distribution specification 1.1, "Pull"; for tokens, "Token Authentication Specification" of the docker
//! registry.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use capabilities::file::ImageName;
use serde::Deserialize;

use super::checksum::Checksum;
use super::documents::{self, Descriptor, Document, Image, MOST_BYTES, Part, follow};
use super::error::ImageError;
use crate::run_to_end::run;

/// The registry whose name is not that of its host.
const NAMED_OTHERWISE: (&str, &str) = ("docker.io", "registry-1.docker.io");
/// The forms of manifests and indexes that are understood.
const ACCEPTED: &str = "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, \
                        application/vnd.docker.distribution.manifest.list.v2+json, \
                        application/vnd.docker.distribution.manifest.v2+json";
/// What curl is told every time: to follow to where a registry keeps its parts, to take addresses as they stand, to give up
/// where nothing comes. It tells the status.
const ALWAYS: &str = "silent\nshow-error\nlocation\nmax-redirs = 5\ngloboff\nretry = 2\nconnect-timeout = 20\n\
                      speed-limit = 100\nspeed-time = 30\nwrite-out = \"%{http_code}\"\n";
/// HTTP statuses.
const OK: u16 = 200;
const UNAUTHORIZED: u16 = 401;
const FORBIDDEN: u16 = 403;
const NOT_FOUND: u16 = 404;
const MEGABYTE: u64 = 1_000_000;

/// Fetches an image into files below `scratch`.
pub(crate) fn pull(
    name: &ImageName,
    scratch: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<Image, ImageError> {
    let mut registry = Registry { name, scratch, token: None };
    let first = scratch.join("first");
    let digest = name.sha256.as_deref().and_then(Checksum::of_digits);
    let reference = match &digest {
        Some(digest) => digest.to_string(),
        None => name.tag.clone().unwrap_or_default(),
    };
    registry.get(&format!("manifests/{reference}"), &first, MOST_BYTES, &name.to_string())?;
    let read = fs::File::open(&first).and_then(Checksum::of);
    let checksum = read.map_err(|source| ImageError::File { path: first.clone(), source })?;
    if let Some(digest) = digest {
        documents::verify(&first, &digest, Part::Manifest)?;
    }
    let document: Document = documents::read(&first, "the manifest")?;
    follow(document, checksum, &mut |part, kind| registry.fetch(part, kind, &mut *progress))
}

/// A registry that is asked for one image.
struct Registry<'a> {
    name: &'a ImageName,
    scratch: &'a Path,
    token: Option<String>,
}

/// What a registry answered.
struct Answer {
    status: u16,
    /// The heads of all answers on the way.
    heads: String,
}

/// A token, under either of the names that registries have for it.
#[derive(Debug, Deserialize)]
struct Token {
    token: Option<String>,
    access_token: Option<String>,
}

impl Registry<'_> {
    fn fetch(
        &mut self,
        part: &Descriptor,
        kind: Part,
        progress: &mut dyn FnMut(&str),
    ) -> Result<PathBuf, ImageError> {
        let into = self.scratch.join(part.digest.digits());
        let (folder, most) = match kind {
            Part::Manifest => ("manifests", MOST_BYTES),
            Part::Config => ("blobs", MOST_BYTES),
            Part::Layer { number, of } => {
                progress(&format!("downloading layer {number} of {of} ({} MB)", part.size.div_ceil(MEGABYTE)));
                ("blobs", part.size)
            }
        };
        // The same layer may come twice.
        if !into.exists() {
            self.get(&format!("{folder}/{}", part.digest), &into, most, &kind.to_string())?;
        }
        Ok(into)
    }

    /// Gets what lies at a path below the image's name, with a token if one is wanted.
    fn get(&mut self, path: &str, into: &Path, most: u64, what: &str) -> Result<(), ImageError> {
        let address = format!("{}/v2/{}/{path}", self.beginning(), self.name.repository);
        let mut answer = self.ask(&self.words(&address, into, most))?;
        if answer.status == UNAUTHORIZED {
            self.token = Some(self.token_for(&answer.heads)?);
            answer = self.ask(&self.words(&address, into, most))?;
        }
        if answer.status == OK {
            return Ok(());
        }
        // What it said instead is not the part.
        let _ = fs::remove_file(into);
        let (registry, what) = (self.name.registry.clone(), what.to_owned());
        Err(match answer.status {
            NOT_FOUND => ImageError::NotThere { registry, what },
            UNAUTHORIZED | FORBIDDEN => ImageError::Refused { registry, what },
            status => ImageError::Status { registry, status, what },
        })
    }

    /// How all addresses of the registry begin.
    fn beginning(&self) -> String {
        let registry = self.name.registry.as_str();
        let host = if registry == NAMED_OTHERWISE.0 { NAMED_OTHERWISE.1 } else { registry };
        let scheme = if self.is_here() { "http" } else { "https" };
        format!("{scheme}://{host}")
    }

    /// Whether it is on this machine, where nobody listens on the way.
    fn is_here(&self) -> bool {
        is_here(&self.name.registry)
    }

    /// What curl is told to get a part.
    fn words(&self, address: &str, into: &Path, most: u64) -> String {
        let mut words = self.words_for(address, into, most);
        // Writing into memory cannot fail.
        let _ = writeln!(words, "header = {}", quoted(&format!("Accept: {ACCEPTED}")));
        if let Some(token) = &self.token {
            let _ = writeln!(words, "header = {}", quoted(&format!("Authorization: Bearer {token}")));
        }
        words
    }

    fn words_for(&self, address: &str, into: &Path, most: u64) -> String {
        let mut words = ALWAYS.to_owned();
        words.push_str(if self.is_here() {
            "proto = \"=http,https\"\nnoproxy = \"*\"\n"
        } else {
            "proto = \"=https\"\n"
        });
        let _ = writeln!(words, "max-filesize = {most}\nurl = {}", quoted(address));
        let _ = writeln!(words, "output = {}", quoted(&into.display().to_string()));
        let _ = writeln!(words, "dump-header = {}", quoted(&self.heads().display().to_string()));
        words
    }

    fn heads(&self) -> PathBuf {
        self.scratch.join("heads")
    }

    fn ask(&self, words: &str) -> Result<Answer, ImageError> {
        let at = |path: &Path, source| ImageError::File { path: path.to_owned(), source };
        let list = self.scratch.join("curl.conf");
        fs::write(&list, words).map_err(|source| at(&list, source))?;
        // -q comes first: a user's own configuration could send the question elsewhere.
        let mut curl = Command::new("curl");
        curl.arg("-q").arg("--config").arg(&list).current_dir(self.scratch);
        let said = run(&mut curl).map_err(ImageError::Curl)?;
        let heads = fs::read(self.heads()).map_err(|source| at(&self.heads(), source))?;
        let status = said.trim().parse().unwrap_or(0);
        Ok(Answer { status, heads: String::from_utf8_lossy(&heads).into_owned() })
    }

    /// A token, from where the registry's refusal says that it is had.
    fn token_for(&self, heads: &str) -> Result<String, ImageError> {
        let challenge = challenge_in(heads).unwrap_or_default();
        let not_known = || ImageError::Challenge {
            registry: self.name.registry.clone(),
            challenge: challenge.chars().filter(|letter| !letter.is_control()).take(200).collect(),
        };
        let wanted = bearer(challenge).ok_or_else(not_known)?;
        let realm = wanted.get("realm").filter(|realm| self.may_ask(realm)).ok_or_else(not_known)?;
        let scope = format!("repository:{}:pull", self.name.repository);
        let scope = wanted.get("scope").unwrap_or(&scope);
        let into = self.scratch.join("token");
        let mut words = self.words_for(realm, &into, MOST_BYTES);
        words.push_str("get\n");
        for (name, value) in [("service", wanted.get("service")), ("scope", Some(scope))] {
            if let Some(value) = value {
                let _ = writeln!(words, "data-urlencode = {}", quoted(&format!("{name}={value}")));
            }
        }
        let answer = self.ask(&words)?;
        let (registry, what) = (self.name.registry.clone(), self.name.to_string());
        match answer.status {
            OK => {}
            UNAUTHORIZED | FORBIDDEN => return Err(ImageError::Refused { registry, what }),
            status => return Err(ImageError::Status { registry, status, what }),
        }
        let token: Token = documents::read(&into, "the token")?;
        // It goes into a line of a file: nothing but what a token may have, RFC 6750.
        let is_sound = |token: &String| {
            let may_have = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
            !token.is_empty() && token.bytes().all(may_have)
        };
        token.token.or(token.access_token).filter(is_sound).ok_or_else(not_known)
    }

    /// Whether a token may be asked for there: by HTTPS, or on this machine.
    fn may_ask(&self, realm: &str) -> bool {
        let plain = realm.strip_prefix("http://").and_then(|rest| rest.split(['/', '?']).next());
        realm.starts_with("https://") || (self.is_here() && plain.is_some_and(is_here))
    }
}

/// Whether a host, with or without a port, is this machine.
fn is_here(host: &str) -> bool {
    let (name, port) = host.split_once(':').unwrap_or((host, ""));
    // What stands before an `@` would not be the host.
    let is_port = port.bytes().all(|byte| byte.is_ascii_digit());
    is_port && (name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback()))
}

/// A text as curl's configuration has it. It is in one line: none of what comes here has another.
fn quoted(text: &str) -> String {
    let line: String = text.chars().filter(|letter| !letter.is_control()).collect();
    format!("\"{}\"", line.replace('\\', "\\\\").replace('"', "\\\""))
}

/// What a refusal wants: a token, if that is among what it would take.
fn challenge_in(heads: &str) -> Option<&str> {
    let fields = heads.lines().filter_map(|line| line.split_once(':'));
    let wanted = fields.filter(|(name, _)| name.trim().eq_ignore_ascii_case("www-authenticate"));
    let wanted: Vec<&str> = wanted.map(|(_, value)| value.trim()).collect();
    let token = wanted.iter().rev().find(|challenge| bearer(challenge).is_some());
    token.or(wanted.last()).copied()
}

/// The parameters of a challenge for a bearer's token: `Bearer realm="https://a.example/token",service="b"`.
fn bearer(challenge: &str) -> Option<BTreeMap<String, String>> {
    let (scheme, mut rest) = challenge.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return None;
    }
    let mut parameters = BTreeMap::new();
    while let Some((name, value)) = rest.split_once('=') {
        let (value, behind) = match value.strip_prefix('"') {
            // A value in quotes may have commas.
            Some(value) => value.split_once('"')?,
            None => value.split_once(',').unwrap_or((value, "")),
        };
        parameters.insert(name.trim_matches([',', ' ']).to_ascii_lowercase(), value.trim().to_owned());
        rest = behind;
    }
    Some(parameters)
}

#[cfg(test)]
mod tests;
