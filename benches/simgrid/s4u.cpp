// The workloads of docs/performance.md as SimGrid actors (S4U); compiled and run by benches/simulators.py.
//
//   s4u PLATFORM.xml ring|doubling|posted|stepwise RANKS BYTES
//
// One actor per rank; a message is a put and a get on a mailbox of its receiver. Prints, for the whole process,
// messages, processor time in seconds, peak memory in bytes and simulated time in seconds.

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <simgrid/s4u.hpp>
#include <string>
#include <sys/resource.h>
#include <vector>

namespace sg4 = simgrid::s4u;

static int ranks;
static unsigned long bytes;
static long messages = 0;
static int payload;

static sg4::Mailbox* box(int rank, int step)
{
  return sg4::Mailbox::by_name(std::to_string(rank) + "/" + std::to_string(step));
}

// Sends to one rank and receives a message of the same step, both at once.
static void exchange(sg4::Mailbox* to, sg4::Mailbox* mine)
{
  auto sent = to->put_async(&payload, bytes);
  mine->get<int>();
  sent->wait();
  messages++;
}

static void ring(int rank)
{
  auto *right = box((rank + 1) % ranks, 0), *mine = box(rank, 0);
  for (int step = 0; step < 2 * (ranks - 1); step++)
    exchange(right, mine);
}

static void doubling(int rank)
{
  for (int distance = 1; distance < ranks; distance *= 2)
    exchange(box(rank ^ distance, distance), box(rank, distance));
}

static void stepwise(int rank)
{
  for (int step = 1; step < ranks; step++)
    exchange(box(rank ^ step, step), box(rank, step));
}

static void posted(int rank)
{
  sg4::Mailbox* mine = box(rank, 0);
  std::vector<sg4::CommPtr> under_way;
  std::vector<int*> received(ranks);
  for (int ahead = 1; ahead < ranks; ahead++)
    under_way.push_back(mine->get_async<int>(&received[ahead]));
  for (int ahead = 1; ahead < ranks; ahead++, messages++)
    under_way.push_back(box((rank + ahead) % ranks, 0)->put_async(&payload, bytes));
  for (auto& comm : under_way)
    comm->wait();
}

static long peak_bytes()
{
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.rfind("VmHWM:", 0) == 0)
      return std::atol(line.c_str() + 6) * 1024;
  return 0;
}

int main(int argc, char** argv)
{
  sg4::Engine engine(&argc, argv);
  if (argc != 5) {
    std::fprintf(stderr, "usage: s4u PLATFORM.xml ring|doubling|posted|stepwise RANKS BYTES\n");
    return 2;
  }
  std::string what = argv[2];
  ranks            = std::atoi(argv[3]);
  bytes            = std::strtoul(argv[4], nullptr, 10);
  engine.load_platform(argv[1]);
  std::function<void(int)> code = what == "ring"       ? ring
                                  : what == "doubling" ? doubling
                                  : what == "posted"   ? posted
                                                       : stepwise;
  for (int rank = 0; rank < ranks; rank++)
    sg4::Actor::create("rank", sg4::Host::by_name("n" + std::to_string(rank)), [code, rank] { code(rank); });
  engine.run();
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  double seconds = used.ru_utime.tv_sec + used.ru_stime.tv_sec + 1e-6 * (used.ru_utime.tv_usec + used.ru_stime.tv_usec);
  std::printf("%ld %.6f %ld %.9f\n", messages, seconds, peak_bytes(), sg4::Engine::get_clock());
}
