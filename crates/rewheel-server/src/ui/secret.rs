//! Codes in forms, which only pages for this browser contain.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::rand::{SecureRandom, SystemRandom};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::fmt;

const CODE_BYTES: usize = 32;

/// What only this browser and the server know: its cookies.
#[derive(Clone)]
pub(super) struct FormSecret(String);

impl fmt::Debug for FormSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FormSecret(..)")
    }
}

impl FormSecret {
    pub(super) fn new(form_cookie: &str, session: Option<&str>) -> FormSecret {
        FormSecret(format!("{form_cookie} {}", session.unwrap_or_default()))
    }

    /// Returns a code for forms. Each page has another mask, so that compressed pages do not reveal it.
    pub(super) fn code(&self) -> String {
        let mac = self.mac("form");
        let mask = random_bytes();
        let masked: Vec<u8> = mask.iter().zip(mac).map(|(mask, byte)| mask ^ byte).collect();
        URL_SAFE_NO_PAD.encode([mask.as_slice(), &masked].concat())
    }

    /// Returns whether a form has a code for this browser.
    pub(super) fn accepts(&self, code: &str) -> bool {
        let Ok(bytes) = URL_SAFE_NO_PAD.decode(code) else { return false };
        if bytes.len() != 2 * CODE_BYTES {
            return false;
        }
        let (mask, masked) = bytes.split_at(CODE_BYTES);
        let mac: Vec<u8> = mask.iter().zip(masked).map(|(mask, byte)| mask ^ byte).collect();
        verify_slices_are_equal(&mac, &self.mac("form")).is_ok()
    }

    /// Signs the text of a form that must come back unchanged.
    pub(super) fn sign(&self, text: &str) -> String {
        URL_SAFE_NO_PAD.encode(self.mac(&format!("text {text}")))
    }

    /// Returns whether a text has its signature.
    pub(super) fn signed(&self, text: &str, signature: &str) -> bool {
        let signature = URL_SAFE_NO_PAD.decode(signature).unwrap_or_default();
        verify_slices_are_equal(&signature, &self.mac(&format!("text {text}"))).is_ok()
    }

    fn mac(&self, text: &str) -> [u8; CODE_BYTES] {
        let mut mac = Hmac::<Sha256>::new_from_slice(self.0.as_bytes())
            .expect("HMAC accepts keys of every length");
        mac.update(b"rewheel dashboard ");
        mac.update(text.as_bytes());
        mac.finalize().into_bytes().into()
    }
}

/// Returns the value of a new cookie.
pub(super) fn random_text() -> String {
    URL_SAFE_NO_PAD.encode(random_bytes())
}

fn random_bytes() -> [u8; CODE_BYTES] {
    let mut bytes = [0; CODE_BYTES];
    SystemRandom::new().fill(&mut bytes).expect("the operating system has random bytes");
    bytes
}

#[cfg(test)]
mod tests {
    use super::{FormSecret, URL_SAFE_NO_PAD};
    use base64::Engine as _;

    #[test]
    fn a_code_is_accepted_only_for_its_own_cookies() {
        let own = FormSecret::new("a", Some("s"));
        let (one, other) = (own.code(), own.code());
        assert_ne!(one, other, "each page has its own mask");
        assert!(own.accepts(&one) && own.accepts(&other));
        for stranger in [("a", None), ("b", Some("s")), ("a", Some("t"))] {
            assert!(!FormSecret::new(stranger.0, stranger.1).accepts(&one), "{stranger:?}");
        }
        let zeros = URL_SAFE_NO_PAD.encode([0; 64]);
        for wrong in ["", "x", "AAAA", &zeros, &one[1..]] {
            assert!(!own.accepts(wrong), "{wrong}");
        }
    }

    #[test]
    fn a_signed_text_cannot_be_changed() {
        let own = FormSecret::new("a", None);
        let signature = own.sign("redrive 12");
        assert!(own.signed("redrive 12", &signature));
        assert!(!own.signed("redrive 13", &signature) && !own.signed("redrive 12", ""));
    }
}
