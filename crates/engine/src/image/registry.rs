//! An image in a registry: fetched part by part, as whoever has not signed in.
//!
//! Owns what a registry is asked, and the token that it may want first. How curl puts a question is `question`'s, and
//! whether a part is the one meant `documents`'.
//!
//! Source: OCI distribution specification 1.1, "Pull"; for tokens, "Token Authentication Specification" of the docker
//! registry.

use std::collections::BTreeMap;
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use capabilities::file::ImageName;
use serde::Deserialize;

use super::documents::{self, Descriptor, Document, Image, MOST_BYTES, Part, follow};
use super::error::ImageError;
use super::question::{Answer, Question};
use crate::checksum::Checksum;

/// The registry whose name is not that of its host.
const NAMED_OTHERWISE: (&str, &str) = ("docker.io", "registry-1.docker.io");
/// The forms of manifests and indexes that are understood.
const ACCEPTED: &str = "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, \
                        application/vnd.docker.distribution.manifest.list.v2+json, \
                        application/vnd.docker.distribution.manifest.v2+json";
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
    let checksum = documents::checksum_of(&first)?;
    if let Some(digest) = digest {
        ImageError::unless_equal(checksum.clone(), &digest, Part::Manifest)?;
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
                progress(&format!(
                    "downloading layer {number} of {of} ({} MB)",
                    part.size.div_ceil(MEGABYTE)
                ));
                // A refusal may be longer than a small layer.
                ("blobs", part.size.max(MOST_BYTES))
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
        let mut answer = self.ask(&address, into, most, what)?;
        if answer.status == UNAUTHORIZED {
            let token = self.token_for(&answer.heads)?;
            self.token = Some(token);
            answer = self.ask(&address, into, most, what)?;
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

    /// Asks once for what lies at an address.
    fn ask(&self, address: &str, into: &Path, most: u64, what: &str) -> Result<Answer, ImageError> {
        let mut head = vec![format!("Accept: {ACCEPTED}")];
        head.extend(self.token.as_ref().map(|token| format!("Authorization: Bearer {token}")));
        let question = Question {
            registry: &self.name.registry,
            what,
            address,
            is_here: self.is_here(),
            most,
            head,
            query: Vec::new(),
            into,
        };
        question.put(self.scratch)
    }

    /// A token, from where the registry's refusal says that it is had.
    fn token_for(&self, heads: &str) -> Result<String, ImageError> {
        let challenge = challenge_in(heads).unwrap_or_default();
        let not_known = || ImageError::Challenge {
            registry: self.name.registry.clone(),
            challenge: challenge.to_owned(),
        };
        let wanted = bearer(challenge).ok_or_else(not_known)?;
        let realm = wanted.get("realm").filter(|realm| self.may_ask(realm)).ok_or_else(not_known)?;
        let usual_scope = format!("repository:{}:pull", self.name.repository);
        let scope = wanted.get("scope").unwrap_or(&usual_scope);
        let into = self.scratch.join("token");
        let mut query: Vec<(&str, &str)> = Vec::new();
        if let Some(service) = wanted.get("service") {
            query.push(("service", service.as_str()));
        }
        query.push(("scope", scope.as_str()));
        let question = Question {
            registry: &self.name.registry,
            what: "a token",
            address: realm,
            is_here: self.is_here(),
            most: MOST_BYTES,
            head: Vec::new(),
            query,
            into: &into,
        };
        let answer = question.put(self.scratch)?;
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
