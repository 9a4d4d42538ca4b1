//! Check for the user's wish to end this process. Signals belong to the process, and so does this
//! check.

use std::sync::OnceLock;

/// Function that returns whether a signal has come that ends the process's work.
type Question = fn() -> bool;

static QUESTION: OnceLock<Question> = OnceLock::new();

/// Sets the function that checks for signals; the code that handles the process's signals calls
/// this. Later calls change nothing. Waiting threads call the function many times a second.
pub fn ask_by(question: Question) {
    QUESTION.get_or_init(|| question);
}

/// Returns whether the user wants this process to end. Waiting threads then give up.
pub fn is_interrupted() -> bool {
    QUESTION.get().is_some_and(|question| question())
}
