//! Requests whose effect would surprise a person.
