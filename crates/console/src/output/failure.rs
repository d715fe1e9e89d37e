//! The message of a command that did not end well.

use crate::exit::Failure;
use crate::output::{hint, tell};

impl Failure {
    /// Writes message and hint to stderr, and returns the exit code.
    pub fn tell(&self) -> u8 {
        if let Some(sentence) = &self.sentence {
            tell(sentence);
        }
        let next = self.hint.as_deref().unwrap_or("this has a page of its own");
        match &self.refusal {
            Some(no) => hint(&format!("{next} (more: tenure error {})", no.code)),
            None if self.hint.is_some() => hint(next),
            None => {}
        }
        self.code
    }
}
