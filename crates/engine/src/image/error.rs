//! What can go wrong with an image, each with the part that it concerns.
//!
//! Owns the errors' forms and their words. Much of what they name was written by whoever made the image: it is printed
//! in one line, with nothing in it that a terminal obeys.

use std::io;
use std::path::{Path, PathBuf};

use history::visible::is_hidden;

use crate::checksum::Checksum;

/// How many letters of the image's own text a message quotes at most.
const MOST_LETTERS: usize = 1_000;

/// An image could not be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ImageError {
    /// A file or folder of ours, or the one that is named.
    #[error("{}: {source}", shown_path(.path))]
    File {
        path: PathBuf,
        /// What the operating system answered.
        source: io::Error,
    },
    /// A document that is not what it should be.
    #[error("{what} of the image cannot be understood: {}", shown_mistake(.source))]
    Document {
        /// The kind of document: a manifest, an index, a configuration.
        what: &'static str,
        /// Where it is no JSON, or which part of it has another form.
        source: serde_json::Error,
    },
    /// A document that could be two things, or is nothing known.
    #[error("{what} of the image is neither a manifest nor an index of manifests, or claims to be both")]
    Unclear {
        /// The kind of document.
        what: &'static str,
    },
    /// A part that is not the one meant.
    #[error("{what} has the SHA-256 {found}, not {expected}: it is damaged or was exchanged")]
    Checksum {
        /// The part, by its kind and number.
        what: String,
        /// What it had to be.
        expected: Checksum,
        /// What it is.
        found: Checksum,
    },
    /// Nothing in it runs here.
    #[error("the image has nothing for linux/{architecture}, only for {}", shown(.has))]
    Platform {
        /// This machine's architecture, as images have it.
        architecture: &'static str,
        /// What it has.
        has: String,
    },
    /// More than one image.
    #[error("it holds several images ({}): write the one that is meant into a file of its own", shown(.names))]
    Several { names: String },
    #[error("{} is no image: it has neither index.json nor manifest.json", shown_path(.path))]
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
    /// More layers than an image has.
    #[error("the manifest of the image has {listed} layers; {most} are the most")]
    ManyLayers {
        /// How many it has.
        listed: usize,
        /// How many it may have.
        most: usize,
    },
    /// More bytes than an image has.
    #[error("the image takes more than the {most} bytes that one may have unpacked")]
    TooLarge {
        /// How many it may have.
        most: u64,
    },
    /// More files than an image has.
    #[error("the image has more than {most} files, folders and links")]
    TooMany {
        /// How many it may have.
        most: u64,
    },
    /// An entry of which more would be kept in memory than a name and its attributes need.
    #[error("the name and the attributes of an entry of the image have more than {most} bytes")]
    LongHead {
        /// How many they may have.
        most: u64,
    },
    /// It would fill the disk.
    #[error("{}: there is no room for {needed_bytes} more bytes of the image: {free_bytes} are free", shown_path(.folder))]
    NoRoom {
        /// Where it is unpacked.
        folder: PathBuf,
        /// What the next file needs, with what is to be left.
        needed_bytes: u64,
        /// What there is.
        free_bytes: u64,
    },
    /// A path that is not within the image.
    #[error("the image names `{}`, which leads out of it", shown_path(.path))]
    Outside {
        /// As it is written.
        path: PathBuf,
    },
    /// Links that lead to each other.
    #[error("the image names `{}`, whose links lead round in a circle", shown_path(.path))]
    Circle {
        /// As it is written.
        path: PathBuf,
    },
    /// A second name for something that is not there.
    #[error("the image makes `{}` a second name of `{}`, which is not there", shown_path(.path), shown_path(.target))]
    LinkToNothing {
        /// The second name.
        path: PathBuf,
        /// The first.
        target: PathBuf,
    },
    /// The program that fetches.
    #[error("{}", shown(.0))]
    Curl(String),
    /// An answer that is longer than it can be, perhaps without an end.
    #[error("{registry} sends more than the {most} bytes that {what} can have")]
    LongAnswer {
        /// The registry's host, with its port where one is given.
        registry: String,
        /// How many there can be.
        most: u64,
        /// What was asked for.
        what: String,
    },
    /// The registry does not know it.
    #[error("{registry} has no {what}")]
    NotThere {
        /// The registry's host, with its port where one is given.
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
        /// The registry's host, with its port where one is given.
        registry: String,
        /// What was asked for.
        what: String,
    },
    /// Another answer.
    #[error("{registry} answered {status} to the question for {what}")]
    Status {
        /// The registry's host, with its port where one is given.
        registry: String,
        /// The HTTP status.
        status: u16,
        /// What was asked for.
        what: String,
    },
    /// A way of asking for a token that is not known.
    #[error("{registry} asks for a token in a way that is not known: `{}`", shown(.challenge))]
    Challenge {
        /// The registry's host, with its port where one is given.
        registry: String,
        /// What it said.
        challenge: String,
    },
}

fn shown_path(path: &Path) -> String {
    shown(&path.to_string_lossy())
}

fn shown_mistake(mistake: &serde_json::Error) -> String {
    // It may have a part of the document in it.
    shown(&mistake.to_string())
}

impl ImageError {
    /// An error where a part has another checksum than it must have.
    pub(crate) fn unless_equal(
        found: Checksum,
        expected: &Checksum,
        what: impl std::fmt::Display,
    ) -> Result<(), ImageError> {
        if found == *expected {
            return Ok(());
        }
        Err(ImageError::Checksum { what: what.to_string(), expected: expected.clone(), found })
    }
}

/// Text of the image or its registry as it may stand in a message.
fn shown(text: &str) -> String {
    let mut shown = String::new();
    for letter in text.chars().take(MOST_LETTERS) {
        if letter.is_control() || is_hidden(letter) {
            shown.extend(letter.escape_default());
        } else {
            shown.push(letter);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_newlines_and_orders_to_the_terminal_stays_in_one_line() {
        let path = PathBuf::from("a\nb\u{1b}[2J\u{202e}c");
        let told = ImageError::Outside { path }.to_string();
        assert_eq!(told, "the image names `a\\nb\\u{1b}[2J\\u{202e}c`, which leads out of it");
        let path = PathBuf::from("x".repeat(5_000));
        assert!(ImageError::Circle { path }.to_string().len() < 1_100);
    }

    #[test]
    fn a_document_s_mistake_is_told_without_its_newlines() {
        let source = serde_json::from_str::<Checksum>("\"a\\nb\"").expect_err("no checksum");
        let told = ImageError::Document { what: "a manifest", source }.to_string();
        assert!(told.contains("`a\\nb` is not a SHA-256 digest"), "{told}");
    }
}
