#include "gdp_grappler/evaluation/emulation/idleness.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

namespace gdp {
namespace {

constexpr char kFolder[] = "/proc/self/task";
constexpr long kPauseNs = 10000;

// The letter of a thread's state; 0 if the thread has ended.
char StateOf(int file) {
  char text[128];  // "12 (name) S ..."; names have up to 15 characters.
  const ssize_t size = pread(file, text, sizeof(text) - 1, 0);
  if (size <= 0) return 0;
  text[size] = '\0';
  const char* name_end = strrchr(text, ')');
  if (name_end == nullptr || name_end + 2 >= text + size) return 0;
  return name_end[2];
}

}  // namespace

Idleness::~Idleness() {
  for (const int file : files_) close(file);
}

void Idleness::Await() {
  // One look at all threads is not enough. After the look at thread A, a thread
  // B may wake A and fall asleep before the look at B. So look twice.
  while (!AllAsleep() || !AllAsleep()) Pause();
}

void Idleness::Pause() {
  // By default Linux lets a thread oversleep by 50 us.
  static thread_local const int exact = prctl(PR_SET_TIMERSLACK, 1UL);
  static_cast<void>(exact);
  const timespec time{0, kPauseNs};
  nanosleep(&time, nullptr);
}

bool Idleness::AllAsleep() {
  FindThreads();
  for (size_t i = 0; i < files_.size(); ++i) {
    const char state = StateOf(files_[i]);
    if (state == 0) num_links_ = 0;  // A new thread may have replaced it.
    if (state == 0 || state == 'R' || state == 'D') {
      // A busy thread is likely to stay busy, so look at it first.
      std::swap(files_[0], files_[i]);
      return false;
    }
  }
  return true;
}

void Idleness::FindThreads() {
  struct stat status;
  if (stat(kFolder, &status) != 0 ||
      static_cast<long>(status.st_nlink) == num_links_) {
    return;
  }
  DIR* folder = opendir(kFolder);
  if (folder == nullptr) return;
  num_links_ = status.st_nlink;
  for (const int file : files_) close(file);
  files_.clear();
  const pid_t own = static_cast<pid_t>(syscall(SYS_gettid));
  while (const dirent* entry = readdir(folder)) {
    if (!isdigit(static_cast<unsigned char>(entry->d_name[0]))) continue;
    if (atoi(entry->d_name) == own) continue;
    const std::string path =
        std::string(kFolder) + "/" + entry->d_name + "/stat";
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file >= 0) files_.push_back(file);
  }
  closedir(folder);
}

}  // namespace gdp
