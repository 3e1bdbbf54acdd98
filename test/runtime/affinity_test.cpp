// Thread counts from affinity and cgroup quotas, against file trees as systems show them.
#include "quipu/runtime/affinity.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <map>
#include <thread>

#if defined(__linux__)
#include <pthread.h>
#endif

namespace {

// A folder that stands for "/", filled from a map of paths to texts.
class FakeRoot {
 public:
  explicit FakeRoot(const std::map<std::string, std::string>& files) {
    root_ = testing::TempDir() + "quipu_cgroup_" +
            testing::UnitTest::GetInstance()->current_test_info()->name();
    for (const auto& [path, text] : files) {
      const std::string full = root_ + path;
      for (std::size_t at = full.find('/', 1); at != std::string::npos;
           at = full.find('/', at + 1)) {
        mkdir(full.substr(0, at).c_str(), 0777);
      }
      std::ofstream(full) << text;
    }
  }
  const std::string& path() const { return root_; }

 private:
  std::string root_;
};

constexpr const char* kMountV2 =
    "22 1 0:21 / /proc rw - proc proc rw\n"
    "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

TEST(CgroupLimit, V2LeastOfAllParents) {
  const FakeRoot root({{"/proc/self/mountinfo", kMountV2},
                       {"/proc/self/cgroup", "0::/user.slice/job\n"},
                       {"/sys/fs/cgroup/user.slice/cpu.max", "150000 100000\n"},
                       {"/sys/fs/cgroup/user.slice/job/cpu.max", "max 100000\n"}});
  EXPECT_EQ(quipu::cgroup_cpu_limit(root.path()), 1.5);
}

TEST(CgroupLimit, V2OwnFolder) {
  const FakeRoot root({{"/proc/self/mountinfo", kMountV2},
                       {"/proc/self/cgroup", "0::/a\n"},
                       {"/sys/fs/cgroup/a/cpu.max", "400000 100000\n"}});
  EXPECT_EQ(quipu::cgroup_cpu_limit(root.path()), 4.0);
}

TEST(CgroupLimit, V2Unlimited) {
  const FakeRoot root({{"/proc/self/mountinfo", kMountV2},
                       {"/proc/self/cgroup", "0::/\n"},
                       {"/sys/fs/cgroup/cpu.max", "max 100000\n"}});
  EXPECT_EQ(quipu::cgroup_cpu_limit(root.path()), std::nullopt);
}

// A container: the mount shows the container's folder as its root, the process file names it.
TEST(CgroupLimit, V1InsideAContainer) {
  const FakeRoot root(
      {{"/proc/self/mountinfo",
        "41 32 0:33 /docker/abc /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
        "42 32 0:34 /docker/abc /sys/fs/cgroup/cpu,cpuacct ro master:9 - cgroup cgroup "
        "rw,cpu,cpuacct\n"},
       {"/proc/self/cgroup", "5:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc/inner\n0::/x\n"},
       {"/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "200000\n"},
       {"/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"},
       {"/sys/fs/cgroup/cpu,cpuacct/inner/cpu.cfs_quota_us", "-1\n"},
       {"/sys/fs/cgroup/cpu,cpuacct/inner/cpu.cfs_period_us", "100000\n"}});
  EXPECT_EQ(quipu::cgroup_cpu_limit(root.path()), 2.0);
}

// The mount's root is the beginning of another folder's name, not its parent.
TEST(CgroupLimit, V2MountOfASiblingWhoseNameBeginsAlike) {
  const FakeRoot root({{"/proc/self/mountinfo",
                        "30 23 0:26 /a /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n"},
                       {"/proc/self/cgroup", "0::/ab/c\n"},
                       {"/sys/fs/cgroup/cpu.max", "300000 100000\n"},
                       {"/sys/fs/cgroupb/c/cpu.max", "100000 100000\n"}});
  EXPECT_EQ(quipu::cgroup_cpu_limit(root.path()), 3.0);
}

// A folder without the slash that begins it is none: the mount itself counts.
TEST(CgroupLimit, V2FolderWithoutASlash) {
  const FakeRoot root({{"/proc/self/mountinfo", kMountV2},
                       {"/proc/self/cgroup", "0::job\n"},
                       {"/sys/fs/cgroup/cpu.max", "200000 100000\n"}});
  EXPECT_EQ(quipu::cgroup_cpu_limit(root.path()), 2.0);
}

// cpuset and cpuacct are not the cpu controller.
TEST(CgroupLimit, V1OnlyTheCpuController) {
  const FakeRoot root({{"/proc/self/mountinfo",
                        "41 32 0:33 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"},
                       {"/proc/self/cgroup", "5:cpuset:/\n"},
                       {"/sys/fs/cgroup/cpuset/cpu.cfs_quota_us", "100000\n"},
                       {"/sys/fs/cgroup/cpuset/cpu.cfs_period_us", "100000\n"}});
  EXPECT_EQ(quipu::cgroup_cpu_limit(root.path()), std::nullopt);
}

TEST(CgroupLimit, NothingToReadOrNonsense) {
  EXPECT_EQ(quipu::cgroup_cpu_limit("/nonexistent"), std::nullopt);
  const FakeRoot root(
      {{"/proc/self/mountinfo", "- cgroup2\n\n - - \nx"}, {"/proc/self/cgroup", ":::\n0\n"}});
  EXPECT_EQ(quipu::cgroup_cpu_limit(root.path()), std::nullopt);
}

TEST(DefaultThreadCount, IsWithinTheMachine) {
  EXPECT_GE(quipu::default_thread_count(), 1u);
  EXPECT_LE(quipu::default_thread_count(), (std::max)(1u, std::thread::hardware_concurrency()));
}

#if defined(__linux__) && defined(__GLIBC__)
TEST(DefaultThreadCount, FollowsTheAffinityMask) {
  const std::vector<int> cpus = quipu::affinity_cpus();
  ASSERT_FALSE(cpus.empty());
  std::size_t count = 0;
  std::thread([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(cpus.back()), &one);
    ASSERT_EQ(pthread_setaffinity_np(pthread_self(), sizeof one, &one), 0);
    count = quipu::default_thread_count();
  }).join();
  EXPECT_EQ(count, 1u);
}
#endif

}  // namespace
