//! The first error of each class that a load saw, with what was said: a count alone does not tell what to do about it.

use std::collections::BTreeSet;

use client::SessionError;
use history::{ErrorClass, FirstError};

/// Longest text kept: a server's answer may be of any length.
const TEXT_CHARACTERS_MAX: usize = 500;

/// Which classes have occurred, and what was said the first time.
#[derive(Debug, Default)]
pub(crate) struct FirstErrors {
    known: BTreeSet<ErrorClass>,
    /// Not yet handed on.
    new: Vec<FirstError>,
}

impl FirstErrors {
    /// Keeps the error if it is the first of its class.
    pub(crate) fn note(&mut self, error: &SessionError, node: Option<&str>, at_s: impl FnOnce() -> f64) {
        if !self.known.insert(error.class) {
            return;
        }
        let text = error.message.chars().take(TEXT_CHARACTERS_MAX).collect();
        let node = node.map(str::to_owned);
        self.new.push(FirstError { class: error.class, code: error.code.clone(), text, node, at_s: at_s() });
    }

    /// Those that were new since the last call.
    pub(crate) fn take(&mut self) -> Vec<FirstError> {
        std::mem::take(&mut self.new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_each_class_the_first_error_is_kept_and_handed_on_once() {
        let error = |class, message: &str| SessionError {
            class,
            definite: true,
            message: message.to_owned(),
            code: Some("42P01".to_owned()),
        };
        let mut first = FirstErrors::default();
        first.note(&error(ErrorClass::Other, "no table"), Some("n1"), || 0.5);
        first.note(&error(ErrorClass::Other, "something else"), Some("n2"), || 0.6);
        first.note(&error(ErrorClass::Timeout, &"ä".repeat(600)), None, || 0.7);
        let told = first.take();
        assert_eq!(told.len(), 2);
        assert_eq!(
            (told[0].text.as_str(), told[0].node.as_deref(), told[0].at_s),
            ("no table", Some("n1"), 0.5)
        );
        assert_eq!(told[1].text.chars().count(), TEXT_CHARACTERS_MAX);
        first.note(&error(ErrorClass::Timeout, "again"), None, || 0.8);
        assert!(first.take().is_empty());
    }
}
