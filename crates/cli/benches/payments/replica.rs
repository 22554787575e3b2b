//! A replica: a process of its own that makes payments over the shared database, and may be killed at any moment.

use super::wallet::{KnownKey, Setup, order};
use lango_core::{
    AccountStatus, BoxFuture, BudgetKey, Payment, PaymentChange, PaymentChanged, PaymentLimits,
    PaymentQuery, PaymentState, PaymentStore, Reservation, Reserved, StoreError, TotalsQuery,
};
use lango_payment::{PaymentError, Payments};
use lango_store::Store;
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread;
use std::time::Duration;

/// The payments that a replica makes at once.
pub const AT_ONCE: usize = 8;

/// What all replicas of a race share.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct World {
    pub database: String,
    pub rpc: String,
    pub key: String,
    pub day: u64,
    pub recipient: u64,
    pub purpose: u64,
    /// A guard that is taken away, to see the race notice it.
    pub plant: Option<String>,
}

/// One payment of the race.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Job {
    pub number: u64,
    pub units: u64,
    pub recipient: u64,
    /// Number of earlier attempts.
    pub attempt: u64,
}

/// What a replica says of a job.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Report {
    pub number: u64,
    /// The state of the payment, `limit`, or the text of another error.
    pub outcome: String,
}

/// Runs as a replica: jobs come in on standard input, reports go out.
pub fn work(world: &str) {
    let world: World = serde_json::from_str(world).expect("a world");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let payments = world.payments();
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let job: Job = serde_json::from_str(&line).expect("a job");
        let (payments, is_planted) = (payments.clone(), world.plant.as_deref() == Some("keys"));
        runtime.spawn(async move {
            let outcome = pay(&payments, job, is_planted).await;
            let report = Report {
                number: job.number,
                outcome,
            };
            let line = serde_json::to_string(&report).expect("JSON") + "\n";
            // The parent may be gone.
            let _ = std::io::stdout().write_all(line.as_bytes());
        });
    }
    runtime.shutdown_timeout(Duration::from_secs(30));
}

async fn pay(payments: &Payments, job: Job, is_key_planted: bool) -> String {
    let mut order = order(&format!("job-{}", job.number), job.units, job.recipient);
    if is_key_planted {
        order.call_key = format!("{} attempt {}", order.call_key, job.attempt);
    }
    match payments.send(&order).await {
        Ok(payment) => payment.state.name().to_owned(),
        Err(PaymentError::Limit { .. }) => "limit".to_owned(),
        Err(error) => error.to_string(),
    }
}

impl World {
    pub fn store(&self) -> Arc<dyn PaymentStore> {
        Arc::new(Store::at(&self.database, "root".into()).expect("a database"))
    }

    pub fn payments(&self) -> Payments {
        let store = self.store();
        let store: Arc<dyn PaymentStore> = match self.plant.as_deref() {
            Some("limits") => Arc::new(Unlocked(store)),
            _ => store,
        };
        let mut setup = Setup::new(self.rpc.clone(), &KnownKey(self.key.clone()), store);
        setup.limits = PaymentLimits {
            payment: self.day,
            day: self.day,
            recipient: self.recipient,
            purpose: self.purpose,
        };
        setup.timeout = Duration::from_secs(20);
        setup.payments()
    }
}

/// A store whose limits are checked before the reservation, and not with it: the guard that the race is about is gone.
struct Unlocked(Arc<dyn PaymentStore>);

impl PaymentStore for Unlocked {
    fn reserve_payment(
        &self,
        mut reservation: Reservation,
    ) -> BoxFuture<'_, Result<Reserved, StoreError>> {
        Box::pin(async move {
            let payment = &reservation.payment;
            let query = TotalsQuery {
                account: payment.account.clone(),
                day: payment.day,
                recipient: payment.recipient.clone(),
                purpose: payment.purpose.clone(),
            };
            let totals = self.0.payment_account(query).await?.totals;
            if let Some((limit, left)) = reservation.limits.exceeded(payment.amount, &totals) {
                return Ok(Reserved::Refused { limit, left });
            }
            // Time for the other payments to pass the same check.
            tokio::time::sleep(Duration::from_millis(60)).await;
            reservation.limits = super::wallet::NO_LIMITS;
            self.0.reserve_payment(reservation).await
        })
    }

    fn change_payment(
        &self,
        change: PaymentChange,
    ) -> BoxFuture<'_, Result<PaymentChanged, StoreError>> {
        self.0.change_payment(change)
    }

    fn payments(
        &self,
        query: PaymentQuery,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Payment>, StoreError>> {
        self.0.payments(query, limit)
    }

    fn payment_account(
        &self,
        query: TotalsQuery,
    ) -> BoxFuture<'_, Result<AccountStatus, StoreError>> {
        self.0.payment_account(query)
    }

    fn payment_budget(&self, key: BudgetKey) -> BoxFuture<'_, Result<u64, StoreError>> {
        self.0.payment_budget(key)
    }
}

/// A replica that runs, seen from outside.
pub struct Running {
    child: Child,
    stdin: ChildStdin,
    /// The jobs that it has and has not reported.
    pub jobs: Vec<Job>,
    /// Its number among all that were started.
    pub id: usize,
}

impl Running {
    /// Starts one; its reports are sent along with its number.
    pub fn start(world: &World, id: usize, reports: &Sender<(usize, Report)>) -> Self {
        let program = std::env::current_exe().expect("this program");
        let mut child = Command::new(program)
            .args(["replica", &serde_json::to_string(world).expect("JSON")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let stdout = child.stdout.take().expect("it is piped");
        let reports = reports.clone();
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                // A line that a kill cut off is no report.
                if let Ok(report) = serde_json::from_str(&line)
                    && reports.send((id, report)).is_err()
                {
                    return;
                }
            }
        });
        let stdin = child.stdin.take().expect("it is piped");
        Self {
            child,
            stdin,
            jobs: Vec::new(),
            id,
        }
    }

    pub fn give(&mut self, job: Job) {
        let line = serde_json::to_string(&job).expect("JSON") + "\n";
        // One that is dead is noticed elsewhere.
        let _ = self.stdin.write_all(line.as_bytes());
        self.jobs.push(job);
    }

    /// `kill -9`; returns the jobs that it had.
    pub fn kill(mut self) -> Vec<Job> {
        let _ = self.child.kill();
        let _ = self.child.wait();
        std::mem::take(&mut self.jobs)
    }
}

/// Returns whether a report ends a job.
pub fn is_end(report: &Report) -> bool {
    report.outcome == "limit" || PaymentState::of_name(&report.outcome).is_some()
}
