//! The place of the dashboard below the public URL of the server.

use crate::config::PublicUrl;

/// Where the dashboard is, as browsers see it.
#[derive(Clone, Debug)]
pub(super) struct Base {
    /// Its path without a slash at its end, such as `/rewheel/ui`.
    path: String,
    is_https: bool,
}

impl Base {
    pub(super) fn new(public: Option<&PublicUrl>) -> Base {
        let path = format!("{}/ui", public.map_or("", PublicUrl::path));
        Base { path, is_https: public.is_some_and(PublicUrl::is_https) }
    }

    /// Returns the path of the dashboard.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// Returns the path of a page, whose own path begins with a slash.
    pub(super) fn link(&self, page: &str) -> String {
        format!("{}{page}", self.path)
    }

    /// Returns the page to open after a sign-in: `next` if it is a page of the dashboard, otherwise the overview.
    pub(super) fn next(&self, next: &str) -> String {
        let rest = next.strip_prefix(&self.path).filter(|rest| rest.starts_with(['/', '?']));
        // No segment may lead out of the dashboard, also not after a browser has normalized it.
        let is_plain = |rest: &&str| {
            let path = rest.split(['?', '#']).next().unwrap_or_default().to_ascii_lowercase();
            !rest.chars().any(|char| char.is_control() || char == '\\' || char.is_whitespace())
                && !path.contains("//")
                && !path.split('/').any(|part| part.replace("%2e", ".").starts_with('.'))
        };
        match rest.filter(is_plain) {
            Some(rest) => self.link(rest),
            None => self.link("/"),
        }
    }

    /// Returns a cookie that only the dashboard gets.
    pub(super) fn cookie(&self, name: &str, value: &str, age_s: u64) -> String {
        let secure = if self.is_https { "; Secure" } else { "" };
        format!(
            "{name}={value}; Path={}; Max-Age={age_s}; HttpOnly; SameSite=Strict{secure}",
            self.path
        )
    }
}

#[cfg(test)]
mod tests {
    use super::Base;
    use crate::config::PublicUrl;

    #[test]
    fn the_next_page_stays_in_the_dashboard() {
        let base = Base::new(PublicUrl::parse("https://a.example/b").ok().as_ref());
        for (next, page) in [
            ("/b/ui/jobs?state=dead", "/b/ui/jobs?state=dead"),
            ("/b/ui/jobs?q=../x", "/b/ui/jobs?q=../x"),
            ("/b/ui", "/b/ui/"),
            ("", "/b/ui/"),
            ("/ui/jobs", "/b/ui/"),
            ("//evil.example/b/ui/", "/b/ui/"),
            ("https://evil.example/b/ui/", "/b/ui/"),
            ("javascript:alert(1)", "/b/ui/"),
            ("/b/ui/../v1/jobs", "/b/ui/"),
            ("/b/ui/%2E%2e/v1", "/b/ui/"),
            ("/b/ui//evil.example", "/b/ui/"),
            ("/b/ui/\\evil", "/b/ui/"),
            ("/b/ui/a\r\nSet-Cookie: x", "/b/ui/"),
            ("/b/uix", "/b/ui/"),
        ] {
            assert_eq!(base.next(next), page, "{next:?}");
        }
    }

    #[test]
    fn cookies_are_limited_to_the_dashboard() {
        let base = Base::new(PublicUrl::parse("https://a.example/b").ok().as_ref());
        let cookie = "s=1; Path=/b/ui; Max-Age=5; HttpOnly; SameSite=Strict; Secure";
        assert_eq!(base.cookie("s", "1", 5), cookie);
        assert!(!Base::new(None).cookie("s", "1", 5).contains("Secure"));
    }
}
