// Full Gibbs sweeps of a Dirichlet process mixture of regressions with two columns, written by hand: the yardstick of
// benchmarks/sweep.py.  Components stand side by side, four are scored at a time, constants of a count are tabulated.
//
// stdin   n seed n_warm n_sweeps a0 b0 v0 concentration, then n lines: x1 x2 y component
// stdout  median nanoseconds per reward and component, mean number of components
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <random>
#include <vector>

constexpr int D = 2, P = D * (D + 1) / 2, ROOM = 136;
constexpr double LOG_2PI = 1.8378770664093453;

typedef double Four __attribute__((vector_size(32), aligned(8)));
typedef int64_t Bits __attribute__((vector_size(32), aligned(8)));

static inline Four log4(Four x) {
  const Bits bits = (Bits)x + (0x3FF0000000000000 - 0x3FE6A09E667F3BCD);
  const Four k = (Four)((bits >> 52) + 0x4330000000000000) - (4503599627370496.0 + 1023.0);
  const Four f = (Four)((bits & 0xFFFFFFFFFFFFF) + 0x3FE6A09E667F3BCD) - 1.0;
  const Four s = f / (2.0 + f), z = s * s, w = z * z, h = 0.5 * f * f;
  const Four even = w * (3.999999999940941908e-01 + w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01));
  const Four odd = 2.857142874366239149e-01 + w * (1.818357216161805012e-01 + w * 1.479819860511658591e-01);
  const Four R = z * (6.666666666666735130e-01 + w * odd) + even;
  return k * 6.93147180369123816490e-01 - ((h - (s * (h + R) + k * 1.90821492927058770002e-10)) - f);
}

static inline Four exp4(Four x) {
  const Four shifted = x * 1.44269504088896338700 + 6755399441055744.0, k = shifted - 6755399441055744.0;
  const Four high = x - k * 6.93147180369123816490e-01, low = k * 1.90821492927058770002e-10, r = high - low, t = r * r;
  const Four Q = 6.61375632143793436117e-05 + t * (-1.65339022054652515390e-06 + t * 4.13813679705723846039e-08);
  const Four c = r - t * (1.66666666666666019037e-01 + t * (-2.77777777770155933842e-03 + t * Q));
  const Four y = 1.0 - ((low - (r * c) / (2.0 - c)) - high);
  return (Four)((Bits)y + ((Bits)shifted << 52));
}

struct Rng {  // xoshiro256**
  uint64_t s[4];
  static uint64_t rotl(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }
  double operator()() {
    const uint64_t r = rotl(s[1] * 5, 7) * 9, t = s[1] << 17;
    s[2] ^= s[0], s[3] ^= s[1], s[1] ^= s[2], s[0] ^= s[3], s[2] ^= t, s[3] = rotl(s[3], 45);
    return (double)(r >> 11) * 0x1p-53;
  }
};

static double a0, b0, v0, concentration;
static std::vector<double> step_of;  // lgamma(a + 1/2) - lgamma(a) at a = a0 + n/2, by n

struct Components {
  alignas(64) double n[ROOM], b[ROOM], constant[ROOM], a[ROOM], half_over_b[ROOM], U[D][ROOM], V[P][ROOM];
  int used = 0;

  void open() {
    const int k = used++;
    n[k] = 0.0, b[k] = b0;
    for (int i = 0; i < D; i++) {
      U[i][k] = 0.0;
      for (int j = 0; j <= i; j++) V[i * (i + 1) / 2 + j][k] = i == j ? v0 : 0.0;
    }
  }
  void copy(int from, int to) {
    n[to] = n[from], b[to] = b[from], constant[to] = constant[from], a[to] = a[from];
    half_over_b[to] = half_over_b[from];
    for (auto& row : U) row[to] = row[from];
    for (auto& row : V) row[to] = row[from];
  }
  void change(int k, const double* x, double y, double weight) {  // add a reward (1) or remove it (-1)
    double v[D], t = weight, e = y;
    for (int i = 0; i < D; i++) {
      v[i] = 0.0;
      for (int j = 0; j < D; j++) v[i] += V[i > j ? i * (i + 1) / 2 + j : j * (j + 1) / 2 + i][k] * x[j];
    }
    for (int i = 0; i < D; i++) t += x[i] * v[i], e -= x[i] * U[i][k];
    for (int i = 0; i < D; i++) {
      U[i][k] += v[i] * e / t;
      for (int j = 0; j <= i; j++) V[i * (i + 1) / 2 + j][k] -= v[i] * v[j] / t;
    }
    b[k] += 0.5 * e * e / t, n[k] += weight;
    if (n[k] == 0.0) return;
    a[k] = a0 + 0.5 * n[k], half_over_b[k] = 0.5 / b[k];
    constant[k] = std::log(n[k]) + step_of[(int)n[k]] - 0.5 * (LOG_2PI + std::log(b[k]));
  }
};

static Components all;
alignas(64) static double weight[ROOM];

static void score(const double* x, double y) {
  for (int k = 0; k < all.used; k += 4) {
#define AT(row) (*(Four*)&(row)[k])
    Four s = {1, 1, 1, 1}, e = {y, y, y, y};
    for (int i = 0; i < D; i++) {
      e -= x[i] * AT(all.U[i]);
      for (int j = 0; j < i; j++) s += 2 * x[i] * x[j] * AT(all.V[i * (i + 1) / 2 + j]);
      s += x[i] * x[i] * AT(all.V[i * (i + 1) / 2 + i]);
    }
    const Four a = AT(all.a);
    AT(weight) = AT(all.constant) + a * log4(s) - (a + 0.5) * log4(s + e * e * AT(all.half_over_b));
  }
}

static int draw(int size, double u) {
  double top = weight[0], total = 0.0;
  for (int k = 1; k < size; k++) top = std::max(top, weight[k]);
  for (int k = 0; k < size; k += 4) {
    const Four gap = AT(weight) - top;
    AT(weight) = gap > -37.0 ? exp4(gap) : Four{0, 0, 0, 0};
  }
#ifdef __AVX__
  asm volatile("vzeroupper" ::: "memory");  // else calls of the C library's logarithm wait hundreds of cycles
#endif
  for (int k = 0; k < size; k++) total += weight[k];
  u *= total;
  int k = 0;
  while (k < size - 1 && u >= weight[k]) u -= weight[k++];
  return k;
}

static double now() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

int main() {
  int n, seed, n_warm, n_sweeps;
  if (scanf("%d %d %d %d %lf %lf %lf %lf", &n, &seed, &n_warm, &n_sweeps, &a0, &b0, &v0, &concentration) != 8) return 1;
  std::vector<double> x(n * D), y(n), fresh(n), cost;
  std::vector<int> z(n), order(n);
  for (int i = 0; i < n; i++)
    if (scanf("%lf %lf %lf %d", &x[D * i], &x[D * i + 1], &y[i], &z[i]) != 4) return 1;
  for (int m = 0; m <= n; m++) step_of.push_back(std::lgamma(a0 + 0.5 * m + 0.5) - std::lgamma(a0 + 0.5 * m));
  for (int i = 0; i < n; i++) {
    while (all.used <= z[i]) all.open();
    all.change(z[i], &x[D * i], y[i], 1.0);
    double s = 1.0;
    for (int j = 0; j < D; j++) s += v0 * x[D * i + j] * x[D * i + j];
    fresh[i] = std::log(concentration) + step_of[0] - 0.5 * (LOG_2PI + std::log(b0)) + a0 * std::log(s);
    fresh[i] -= (a0 + 0.5) * std::log(s + 0.5 * y[i] * y[i] / b0);
    order[i] = i;
  }
  std::mt19937_64 words(seed);
  Rng rng;
  for (auto& word : rng.s) word = words();
  double components = 0.0;
  for (int round = -n_warm; round < n_sweeps; round++) {
    const double start = now();
    const int before = all.used;
    for (int i = n - 1; i > 0; i--) std::swap(order[i], order[(int)(rng() * (i + 1))]);
    for (int i : order) {
      const int old = z[i];
      all.change(old, &x[D * i], y[i], -1.0);
      if (all.n[old] == 0.0) {
        const int last = --all.used;
        if (old != last) {
          all.copy(last, old);
          for (int& label : z)
            if (label == last) label = old;
        }
      }
      score(&x[D * i], y[i]);
      weight[all.used] = fresh[i];
      z[i] = draw(all.used + 1, rng());
      if (z[i] == all.used) all.open();
      if (all.used + 8 > ROOM) return 2;
      all.change(z[i], &x[D * i], y[i], 1.0);
    }
    if (round < 0) continue;
    const double size = 0.5 * (before + all.used);
    cost.push_back((now() - start) / n / size), components += size / n_sweeps;
  }
  std::sort(cost.begin(), cost.end());
  printf("%.3f %.3f\n", cost[cost.size() / 2], components);
}
