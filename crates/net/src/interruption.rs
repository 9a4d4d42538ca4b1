//! Whether the user wants this process to end: signals belong to the process, and so does the
//! question.

use std::sync::OnceLock;

/// Asks whether a signal has come that ends what the process does.
type Question = fn() -> bool;

static QUESTION: OnceLock<Question> = OnceLock::new();

/// Whoever handles the process's signals says how to ask for them; the first question stays.
/// Waiting threads ask it many times a second.
pub fn ask_by(question: Question) {
    QUESTION.get_or_init(|| question);
}

/// Whether the user wants this process to end; what waits then gives up.
pub fn is_interrupted() -> bool {
    QUESTION.get().is_some_and(|question| question())
}
