//! Computes how long to wait before a retry.

use hyper::header::{HeaderMap, RETRY_AFTER};
use std::time::{Duration, SystemTime};

/// The maximum wait that lango accepts from a service.
const MAX_WAIT: Duration = Duration::from_secs(24 * 60 * 60);

/// Returns how long a service asks to wait, at most one day. Reads `retry-after-ms`, or `Retry-After` in seconds or as
/// a date.
pub fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let number = |text: &str| {
        text.trim()
            .parse::<f64>()
            .ok()
            .filter(|number| *number >= 0.0)
    };
    let seconds = match text("retry-after-ms").and_then(number) {
        Some(milliseconds) => milliseconds / 1000.0,
        None => {
            let text = text(RETRY_AFTER.as_str())?;
            match number(text) {
                Some(seconds) => seconds,
                None => {
                    let date = httpdate::parse_http_date(text.trim()).ok()?;
                    date.duration_since(now).unwrap_or_default().as_secs_f64()
                }
            }
        }
    };
    Some(Duration::from_secs_f64(seconds.min(MAX_WAIT.as_secs_f64())))
}

/// Returns the pause before a retry: `first`, doubled for each failure after the first.
pub fn backoff(first: Duration, failures: u32) -> Duration {
    first.saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: &'static str, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name.parse().unwrap(), value.parse().unwrap())])
    }

    #[test]
    fn a_wait_can_be_milliseconds_seconds_or_a_date() {
        let now = httpdate::parse_http_date("Wed, 21 Oct 2015 07:28:00 GMT").unwrap();
        for (name, value, expected) in [
            ("retry-after-ms", "1500", Some(1500)),
            ("retry-after", "2", Some(2000)),
            ("retry-after", "0.25", Some(250)),
            ("retry-after", "Wed, 21 Oct 2015 07:28:30 GMT", Some(30_000)),
            ("retry-after", "Wed, 21 Oct 2015 07:00:00 GMT", Some(0)),
            ("retry-after", "99999999999", Some(86_400_000)),
            ("retry-after", "-1", None),
            ("retry-after", "soon", None),
            ("retry-after", "NaN", None),
        ] {
            let wait = retry_after(&headers(name, value), now);
            assert_eq!(wait, expected.map(Duration::from_millis), "{name}: {value}");
        }
        assert_eq!(retry_after(&HeaderMap::new(), now), None);
    }

    #[test]
    fn a_pause_doubles_and_does_not_overflow() {
        let first = Duration::from_millis(500);
        assert_eq!(backoff(first, 0), first);
        assert_eq!(backoff(first, 1), first);
        assert_eq!(backoff(first, 3), Duration::from_secs(2));
        assert!(backoff(Duration::MAX, u32::MAX) >= Duration::from_secs(1));
    }
}
