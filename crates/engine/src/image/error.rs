//! What can go wrong with an image, each with the part that it concerns.
//!
//! Owns the errors' forms and their words.

use std::io;
use std::path::PathBuf;

use super::checksum::Checksum;

/// An image could not be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ImageError {
    /// A file or folder of ours, or the one that is named.
    #[error("{path}: {source}")]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A document that is not what it should be.
    #[error("{what} of the image cannot be understood: {source}")]
    Document {
        /// Which.
        what: &'static str,
        /// Why.
        source: serde_json::Error,
    },
    /// A document that could be two things, or is nothing known.
    #[error("{what} of the image is neither a manifest nor an index of manifests, or claims to be both")]
    Unclear {
        /// Which.
        what: &'static str,
    },
    /// A part that is not the one meant.
    #[error("{what} has the SHA-256 {found}, not {expected}: it is damaged or was exchanged")]
    Checksum {
        /// Which.
        what: String,
        /// What it had to be.
        expected: Checksum,
        /// What it is.
        found: Checksum,
    },
    /// Nothing in it runs here.
    #[error("the image has nothing for linux/{architecture}, only for {has}")]
    Platform {
        /// This machine's architecture, as images have it.
        architecture: &'static str,
        /// What it has.
        has: String,
    },
    /// More than one image.
    #[error("it holds several images ({names}): write the one that is meant into a file of its own")]
    Several {
        /// Their names.
        names: String,
    },
    /// No image.
    #[error("{path} is no image: it has neither index.json nor manifest.json")]
    NoImage {
        /// What was named.
        path: PathBuf,
    },
    /// Indexes of indexes.
    #[error("the index of the image leads to further indexes and to no manifest")]
    Endless,
    /// Two documents that do not belong together.
    #[error("the manifest of the image has {listed} layers, its configuration {named}")]
    Layers {
        /// How many the manifest has.
        listed: usize,
        /// How many the configuration has.
        named: usize,
    },
    /// A path that is not within the image.
    #[error("the image names `{path}`, which leads out of it")]
    Outside {
        /// As it is written.
        path: PathBuf,
    },
    /// Links that lead to each other.
    #[error("the image names `{path}`, whose links lead round in a circle")]
    Circle {
        /// As it is written.
        path: PathBuf,
    },
    /// A second name for something that is not there.
    #[error("the image makes `{path}` a second name of `{target}`, which is not there")]
    LinkToNothing {
        /// The second name.
        path: PathBuf,
        /// The first.
        target: PathBuf,
    },
    /// The program that fetches.
    #[error("{0}")]
    Curl(String),
    /// The registry does not know it.
    #[error("{registry} has no {what}")]
    NotThere {
        /// The registry.
        registry: String,
        /// What was asked for.
        what: String,
    },
    /// The registry gives it only to whom it knows.
    #[error(
        "{registry} gives {what} only to whoever has signed in: fetch it where that can be done, save it with \
         `docker save` or `skopeo copy`, and name that file (`image: ./image.tar`)"
    )]
    Refused {
        /// The registry.
        registry: String,
        /// What was asked for.
        what: String,
    },
    /// Another answer.
    #[error("{registry} answered {status} to the question for {what}")]
    Status {
        /// The registry.
        registry: String,
        /// The HTTP status.
        status: u16,
        /// What was asked for.
        what: String,
    },
    /// A way of asking for a token that is not known.
    #[error("{registry} asks for a token in a way that is not known: `{challenge}`")]
    Challenge {
        /// The registry.
        registry: String,
        /// What it said.
        challenge: String,
    },
}
