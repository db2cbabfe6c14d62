//! What a user reads when a file is refused: one or more problems, each with a caret in the text it is about.
//!
//! Owns where problems point and how they are presented; the languages find them.

use std::fmt;
use std::sync::Arc;

use miette::{Diagnostic, LabeledSpan, NamedSource, SourceCode};

use crate::language::Language;

/// Most problems shown at once: beyond this, one mistake is usually the cause of the rest.
const MOST_PROBLEMS: usize = 20;

/// A stretch of bytes in one of the texts a file is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spot {
    /// Which text: 0 is the file, `k` is override number `k`.
    pub text: usize,
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

/// A value and where it was written.
#[derive(Debug, Clone, PartialEq)]
pub struct Spanned<T> {
    pub value: T,
    /// Where it stands.
    pub at: Spot,
}

/// A problem before it is tied to the text it points into.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// Stable code, the part after `scenario::` or what else the language is called.
    pub code: &'static str,
    /// What is wrong.
    pub message: String,
    /// Where.
    pub at: Spot,
    /// A few words under the caret.
    pub label: String,
    /// What to write instead.
    pub help: String,
    /// A second place that explains the first.
    pub also: Option<(Spot, String)>,
}

/// Problems found so far.
#[derive(Debug, Default)]
pub struct Findings(Vec<Finding>);

impl Findings {
    /// Notes a problem. `message`, `label` and `help` are for the user's eyes.
    pub fn add(
        &mut self,
        code: &'static str,
        at: Spot,
        message: impl Into<String>,
        label: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.push(Finding {
            code,
            message: message.into(),
            at,
            label: label.into(),
            help: help.into(),
            also: None,
        });
    }

    /// Notes a problem that is already put together.
    pub fn push(&mut self, finding: Finding) {
        self.0.push(finding);
    }

    /// Whether nothing is wrong so far.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether there are as many as will be shown.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.0.len() >= MOST_PROBLEMS
    }

    /// All of them, in the order they were found.
    #[must_use]
    pub fn into_all(self) -> Vec<Finding> {
        self.0
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The refusal these amount to; `texts` are the file and the overrides, in [`Spot::text`]'s order.
    #[must_use]
    pub fn into_rejection(mut self, texts: &[Text], language: &'static Language) -> Rejection {
        self.0.sort_by_key(|finding| finding.at);
        let left_out = self.0.len().saturating_sub(MOST_PROBLEMS);
        self.0.truncate(MOST_PROBLEMS);
        let sources: Vec<_> = texts
            .iter()
            .map(|text| Arc::new(NamedSource::new(text.name.clone(), text.text.clone())))
            .collect();
        let name = texts.first().map(|text| text.name.clone()).unwrap_or_default();
        let problems = self
            .0
            .into_iter()
            .filter_map(|finding| Problem::from_finding(finding, texts, (&sources, language)))
            .collect();
        Rejection { name, problems, left_out }
    }
}

/// A text that spots point into.
#[derive(Debug, Clone)]
pub struct Text {
    /// What it is called in messages.
    pub name: String,
    /// The text itself.
    pub text: String,
}

/// Why a file was refused: one or more [`Problem`]s, in the file's order.
///
/// As a [`Diagnostic`] a single problem is shown as itself; several are shown under a heading that counts them.
#[derive(Debug, Clone)]
pub struct Rejection {
    name: String,
    problems: Vec<Problem>,
    left_out: usize,
}

impl Rejection {
    /// The problems, in the file's order; at most twenty, see [`Rejection::left_out`].
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// How many further problems were found and are not listed; there may be more still.
    #[must_use]
    pub fn left_out(&self) -> usize {
        self.left_out
    }

    fn only(&self) -> Option<&Problem> {
        match self.problems.as_slice() {
            [problem] => Some(problem),
            _ => None,
        }
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.only(), self.left_out) {
            (Some(problem), _) => problem.fmt(f),
            (None, 0) => write!(f, "{} problems in {}", self.problems.len(), self.name),
            (None, more) => write!(
                f,
                "at least {} problems in {}; the first {MOST_PROBLEMS} are shown",
                self.problems.len() + more,
                self.name
            ),
        }
    }
}

impl std::error::Error for Rejection {}

impl Diagnostic for Rejection {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.only().and_then(Diagnostic::code)
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.only().and_then(Diagnostic::help)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.only().and_then(Diagnostic::source_code)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        self.only().and_then(Diagnostic::labels)
    }

    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn Diagnostic> + 'a>> {
        if self.problems.len() < 2 {
            return None;
        }
        Some(Box::new(self.problems.iter().map(|problem| problem as &dyn Diagnostic)))
    }
}

/// One thing that is wrong with a file.
#[derive(Debug, Clone)]
pub struct Problem {
    family: &'static str,
    code: &'static str,
    message: String,
    label: String,
    help: String,
    span: (usize, usize),
    also: Option<(usize, usize, String)>,
    source_name: String,
    source: Arc<NamedSource<String>>,
}

impl Problem {
    fn from_finding(
        finding: Finding,
        texts: &[Text],
        (sources, language): (&[Arc<NamedSource<String>>], &'static Language),
    ) -> Option<Self> {
        let (text, source) = (texts.get(finding.at.text)?, sources.get(finding.at.text)?);
        let (start, end) = within(&text.text, finding.at);
        // A second label can only be drawn in the same text.
        let also = finding.also.filter(|(at, _)| at.text == finding.at.text).map(|(at, label)| {
            let (start, end) = within(&text.text, at);
            (start, end, label)
        });
        Some(Problem {
            family: language.family,
            code: finding.code,
            message: finding.message,
            label: finding.label,
            help: finding.help,
            span: (start, end),
            also,
            source_name: text.name.clone(),
            source: Arc::clone(source),
        })
    }

    /// Stable code of this kind of problem: `unknown-key`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.code
    }

    /// What is wrong.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What to write instead.
    #[must_use]
    pub fn help(&self) -> &str {
        &self.help
    }

    /// The name of the text the caret is in: the file's, or `--set` for an override.
    #[must_use]
    pub fn source_name(&self) -> &str {
        &self.source_name
    }

    /// The bytes the caret is under, first and one past the last.
    #[must_use]
    pub fn span(&self) -> (usize, usize) {
        self.span
    }

    /// The very text the caret is under.
    #[must_use]
    pub fn culprit(&self) -> &str {
        self.source.inner().get(self.span.0..self.span.1).unwrap_or_default()
    }
}

/// The spot's bytes, held inside the text and at character boundaries whatever happened before.
fn within(text: &str, at: Spot) -> (usize, usize) {
    let floor = |mut index: usize| {
        index = index.min(text.len());
        while !text.is_char_boundary(index) {
            index -= 1;
        }
        index
    };
    let start = floor(at.start);
    (start, floor(at.end).max(start))
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Problem {}

impl Diagnostic for Problem {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(format!("{}::{}", self.family, self.code)))
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(&self.help))
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(self.source.as_ref())
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let (start, end) = self.span;
        let primary = LabeledSpan::new_primary_with_span(Some(self.label.clone()), (start, end - start));
        let also = self.also.as_ref().map(|(start, end, label)| {
            LabeledSpan::new_with_span(Some(label.clone()), (*start, end - start))
        });
        Some(Box::new(std::iter::once(primary).chain(also)))
    }
}
