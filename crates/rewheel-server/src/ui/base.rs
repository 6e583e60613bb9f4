//! The place of the dashboard below the public URL of the server.

use crate::config::PublicUrl;

/// Where the dashboard is, as browsers see it.
#[derive(Clone, Debug)]
pub(super) struct Base {
    /// Its path without a slash at its end, such as `/rewheel/ui`.
    path: String,
    /// The public URL of the server.
    server: Option<String>,
    is_https: bool,
}

impl Base {
    /// Without a public URL, browsers reach the server itself, perhaps over TLS.
    pub(super) fn new(public: Option<&PublicUrl>, has_tls: bool) -> Base {
        let path = format!("{}/ui", public.map_or("", PublicUrl::path));
        let server = public.map(|url| format!("{}{}", url.origin(), url.path()));
        Base { path, server, is_https: public.map_or(has_tls, PublicUrl::is_https) }
    }

    /// Returns the URL of the server for commands, without a slash at its end. `host` is the header of the request.
    pub(super) fn server(&self, host: Option<&str>) -> String {
        let scheme = if self.is_https { "https" } else { "http" };
        let direct = || format!("{scheme}://{}", host.unwrap_or("127.0.0.1:7420"));
        self.server.clone().unwrap_or_else(direct)
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
        let base = Base::new(PublicUrl::parse("https://a.example/b").ok().as_ref(), false);
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
        let base = Base::new(PublicUrl::parse("https://a.example/b").ok().as_ref(), false);
        let cookie = "s=1; Path=/b/ui; Max-Age=5; HttpOnly; SameSite=Strict; Secure";
        assert_eq!(base.cookie("s", "1", 5), cookie);
        assert!(!Base::new(None, false).cookie("s", "1", 5).contains("Secure"));
        assert!(Base::new(None, true).cookie("s", "1", 5).contains("Secure"));
        // The proxy decides what browsers use.
        let behind = Base::new(PublicUrl::parse("http://a.example").ok().as_ref(), true);
        assert!(!behind.cookie("s", "1", 5).contains("Secure"));
    }

    #[test]
    fn commands_name_the_server_as_clients_reach_it() {
        let host = Some("h:1");
        let public = PublicUrl::parse("https://a.example/b").ok();
        assert_eq!(Base::new(public.as_ref(), false).server(host), "https://a.example/b");
        assert_eq!(Base::new(None, true).server(host), "https://h:1");
        assert_eq!(Base::new(None, false).server(None), "http://127.0.0.1:7420");
    }
}
